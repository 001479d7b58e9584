// One conversation with the server, whatever pane is open: its turns, the reply that is coming, and
// the events of the latest one as they came over the wire.

import { useRef, useState } from "./dom.js";
import { NOTHING, fold } from "./fold.js";
import { events } from "./sse.js";

export const WEATHER = {
  name: "get_weather",
  description: "The weather in a city.",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const SETTINGS = { system: "", max_tokens: 256, temperature: 0.7, offersTool: false, thinks: false };

// `onEnd(id)` is called when a reply has ended; by then the server has its record.
export function useConversation(client, model, onEnd) {
  const [settings, set] = useState(SETTINGS);
  const [turns, setTurns] = useState([]);
  const [reply, setReply] = useState(null); // while it comes
  const [failure, setFailure] = useState(null);
  const [wire, setWire] = useState(null); // {id, events, isOver}
  const stopping = useRef(null);

  const send = async (text) => {
    const asked = [...turns, { role: "user", content: userContent(text, turns) }];
    setTurns(asked);
    setFailure(null);
    setReply(NOTHING);
    stopping.current = new AbortController();
    const talking = talk(client, bodyOf(settings, asked, model), stopping.current.signal, { setReply, setWire });
    const { said, id, error } = await talking;
    setReply(null);
    setFailure(error ?? said.error);
    const { stop_reason, usage, content: blocks } = said;
    const content = blocks.filter(isWhole);
    setTurns(content.length ? [...asked, { role: "assistant", content, stop_reason, usage }] : turns);
    if (id) await onEnd(id).catch((failure) => setFailure(failure.message));
  };
  const stop = () => stopping.current?.abort();
  return { settings, set, turns, setTurns, reply, failure, wire, send, stop };
}

// One request, told as it comes; then {said, id, error}, whole or not.
async function talk(client, body, signal, { setReply, setWire }) {
  const started = performance.now();
  const seen = [];
  let said = NOTHING, id = null, error = null;
  try {
    const response = await client.fetch("v1/messages", { body, signal, headers: { "minimsg-trace": "1" } });
    id = response.headers.get("request-id");
    for await (const each of events(response)) {
      seen.push({ at_s: (performance.now() - started) / 1000, ...each });
      setReply((said = fold(said, each.event)));
      setWire({ id, events: seen, isOver: false });
    }
  } catch (failure) {
    if (failure.name !== "AbortError") error = failure.message;
  }
  setWire({ id, events: seen, isOver: true });
  return { said, id, error };
}

function bodyOf(settings, turns, model) {
  const messages = turns.map(({ role, content }) => ({ role, content }));
  const body = { model, max_tokens: settings.max_tokens, stream: true, messages };
  if (settings.system) body.system = settings.system;
  if (settings.offersTool) body.tools = [WEATHER];
  if (settings.thinks) body.thinking = { type: "adaptive" };
  else body.temperature = settings.temperature;
  return body;
}

// The calls that wait for a result.
export function openCalls(turns) {
  const last = turns.at(-1);
  return last?.role === "assistant" ? last.content.filter((block) => block.type === "tool_use") : [];
}

// What is typed, or, if tools were called, their result.
function userContent(text, turns) {
  const calls = openCalls(turns);
  if (!calls.length) return [{ type: "text", text }];
  return calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: text }));
}

// Whether a block can be sent back: a call that was cut cannot.
const isWhole = (block) => block && block.json === undefined && block.text !== "";
