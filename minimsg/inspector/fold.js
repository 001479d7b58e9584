// The events of a reply to the blocks that it is made of, as far as it has come.

const APPEND = {
  text_delta: (block, delta) => { block.text += delta.text; },
  thinking_delta: (block, delta) => { block.thinking += delta.thinking; },
  signature_delta: (block, delta) => { block.signature = delta.signature; },
  input_json_delta: (block, delta) => { block.json = (block.json ?? "") + delta.partial_json; },
  citations_delta: (block, delta) => { block.citations = [...(block.citations ?? []), delta.citation]; },
};

// Takes one event into `reply`, {content, stop_reason, usage, error}; returns a new one.
export function fold(reply, event) {
  const content = [...reply.content];
  const change = { content };
  if (event.type === "content_block_start") content[event.index] = { ...event.content_block };
  if (event.type === "content_block_delta" && content[event.index]) {
    content[event.index] = { ...content[event.index] };
    APPEND[event.delta?.type]?.(content[event.index], event.delta);
  }
  if (event.type === "content_block_stop" && content[event.index]) {
    content[event.index] = closed(content[event.index]);
  }
  if (event.type === "message_delta") {
    Object.assign(change, { stop_reason: event.delta?.stop_reason, usage: event.usage });
  }
  if (event.type === "error") change.error = event.error?.message ?? "an error";
  return { ...reply, ...change };
}

export const NOTHING = { content: [], stop_reason: null, usage: null, error: null };

// A block that can be sent back: the pieces of its input as one value.
function closed({ json, ...block }) {
  if (json === undefined) return block;
  try {
    return { ...block, input: JSON.parse(json || "{}") };
  } catch {
    return { ...block, json };
  }
}
