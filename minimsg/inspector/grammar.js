// Which event may follow which: protocol/grammar.py, read from its own tables (rules.js, made by
// rules.py). tests/inspector/test_grammar.py holds the two together.

import { BLOCK_START, DELTAS, END, KNOWN, KNOWN_DELTAS, NEXT, START } from "./rules.js";

// What is wrong with each of the events, or null; `last` is what is wrong with ending there.
export function check(events) {
  const stream = { state: START, blocks: 0, type: null };
  const wrongs = events.map((event, index) => push(stream, event, index + 1));
  const last = stream.state === END ? null : `the stream ${stream.state} and is cut`;
  return { wrongs, last };
}

// Moves the stream unless something is wrong, which is then returned.
function push(stream, event, number) {
  const kind = String(event.type);
  if (!KNOWN.includes(kind) && stream.state !== END) return null;
  const following = NEXT[stream.state]?.[kind];
  const wrong = following === undefined
    ? `the stream ${stream.state}`
    : wrongIndex(stream, kind, event.index) ?? wrongDelta(stream, kind, event.delta?.type);
  if (wrong !== null) return `event ${number}, ${kind}: ${wrong}`;
  stream.state = following;
  if (kind === BLOCK_START) {
    stream.blocks += 1;
    stream.type = event.content_block?.type;
  }
  return null;
}

function wrongIndex(stream, kind, index) {
  if (!kind.startsWith("content_block")) return null;
  const right = kind === BLOCK_START ? stream.blocks : stream.blocks - 1;
  return index === right ? null : `index ${JSON.stringify(index) ?? "None"} where ${right} is due`;
}

function wrongDelta(stream, kind, delta) {
  const allowed = DELTAS[stream.type];
  if (kind !== "content_block_delta" || !KNOWN_DELTAS.includes(delta) || !allowed) return null;
  return allowed.includes(delta) ? null : `${delta} in a block of type ${stream.type}`;
}
