// Server-sent events from a response that is read as it comes: an async generator of
// {event, bytes}, where `bytes` is the size of the frame.

const encoder = new TextEncoder();

export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const frames = (rest + part.value).split("\n\n");
      rest = frames.pop();
      yield* frames.flatMap(read);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

// The event of a frame; none if it is only a comment.
function read(frame) {
  const data = frame.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
  if (!data.length) return [];
  const bytes = encoder.encode(frame).length + 2;
  try {
    return [{ bytes, event: JSON.parse(data.join("\n")) }];
  } catch {
    return [{ bytes, event: { type: "data that is no JSON", data: data.join("\n") } }];
  }
}
