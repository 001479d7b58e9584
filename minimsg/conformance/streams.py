"""What is checked of a stream, by name: bytes, frames, order, what events may hold.

Each check is one rule and says what is wrong with a reply, or None. The order of events is
`protocol/grammar.py`, which our own tests use too. What must hold of one kind of reply only
stands in the cases. Source: Messages API streaming page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import dropwhile
from typing import Final

from minimsg.conformance.case import Json
from minimsg.conformance.reply import GROWING, Reply, parse_object
from minimsg.protocol import grammar

EMPTY: Final[dict[str, Json]] = {
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "thinking": {"thinking": ""},
}
FIELDS: Final = ("event", "data", "id", "retry")


def encoding(reply: Reply) -> str | None:
    """Every byte is UTF-8."""
    try:
        reply.raw.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start} of the body: {error.reason}"
    return None


def lines(reply: Reply) -> str | None:
    """Every line is a field that clients know, a comment, or empty."""
    for line in reply.source.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        name, colon, _ = line.partition(":")
        if line and name and (not colon or name not in FIELDS):
            return f"the line {line[:80]!r} is no field"
    return None


def frames(reply: Reply) -> str | None:
    """Every frame has data and ends with a blank line, the last one too."""
    if not reply.frames:
        return "no frame came"
    cut = next((frame for frame in reply.frames if not frame.is_complete), None)
    return f"no blank line after the last frame, {cut.data[:80]!r}" if cut else None


def data(reply: Reply) -> str | None:
    """The data of every frame is one JSON object with a type."""
    for frame in reply.frames:
        value = parse_object(frame.data)
        if value is None or not isinstance(value.get("type"), str):
            return f"data {frame.data[:80]!r} is no event"
    return None


def names(reply: Reply) -> str | None:
    """The `event:` line of a frame says the type of its data."""
    for frame in reply.frames:
        kind = (parse_object(frame.data) or {}).get("type")
        if frame.event != kind:
            return f"event: {frame.event or '(none)'} before data of type {kind}"
    return None


def order(reply: Reply) -> str | None:
    """Events come in the order of the grammar, blocks one after the other from index 0."""
    return grammar.check(dropwhile(_is_ping, reply.events))


def first(reply: Reply) -> str | None:
    """message_start is the first event: a ping comes after it."""
    return "a ping comes before message_start" if any(map(_is_ping, reply.events[:1])) else None


def end(reply: Reply) -> str | None:
    """message_stop is the last event, and nothing comes after it: no `[DONE]`, no ping."""
    if not reply.frames:
        return "no frame came"
    last = reply.frames[-1]
    is_stop = (parse_object(last.data) or {}).get("type") == "message_stop"
    return None if is_stop else f"the last frame is {last.data[:80]!r}"


def start(reply: Reply) -> str | None:
    """message_start holds a message of which nothing is written yet."""
    message = _first(reply, "message_start").get("message")
    if not isinstance(message, dict):
        return "message_start has no message"
    for key, value in {"type": "message", "role": "assistant", "content": []}.items():
        if message.get(key) != value:
            return f"message.{key} is {message.get(key)!r} where {value!r} is due"
    for key in ("stop_reason", "stop_sequence"):
        if key not in message or message[key] is not None:
            return f"message.{key} is {message.get(key, 'missing')!r} where null is due"
    return None


def opening(reply: Reply) -> str | None:
    """A block opens empty: its text, citations, thinking or input come in deltas."""
    for event in _of(reply, "content_block_start"):
        block = event.get("content_block")
        if not isinstance(block, dict):
            return "content_block_start without a content_block"
        for key, value in EMPTY.get(str(block.get("type")), {}).items():
            if block.get(key) != value:
                return f"content_block.{key} is {block.get(key, 'missing')!r}, not {value!r}"
        if block.get("citations"):
            return "content_block.citations is not empty"
    return None


def growth(reply: Reply) -> str | None:
    """Every delta holds the text, or the citation, that its type promises."""
    for event in _of(reply, "content_block_delta"):
        delta = event.get("delta")
        kind = delta.get("type") if isinstance(delta, dict) else None
        key = GROWING.get(str(kind))
        if not isinstance(delta, dict) or (key and not isinstance(delta.get(key), str)):
            return f"a delta {json.dumps(delta)[:80]} without its {key or 'type'}"
        if kind == "citations_delta" and not isinstance(delta.get("citation"), dict):
            return f"a delta {json.dumps(delta)[:80]} without its citation"
    return None


def filled(reply: Reply) -> str | None:
    """No text block stays empty: a client could not send it back."""
    for place, block in enumerate(_content(reply)):
        if block.get("type") == "text" and not block.get("text"):
            return f"the text block at index {place} is empty"
    return None


def characters(reply: Reply) -> str | None:
    """No delta holds half a character."""
    for event in _of(reply, "content_block_delta"):
        delta = event.get("delta")
        for value in delta.values() if isinstance(delta, dict) else ():
            if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
                return f"half a character (a lone surrogate) in {value!r}"
    return None


def usage(reply: Reply) -> str | None:
    """message_start counts the prompt, message_delta the reply; counts never shrink."""
    message = _first(reply, "message_start").get("message")
    first = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(first, dict) or not _is_count(first.get("input_tokens")):
        return "message_start has no usage.input_tokens"
    if not _is_count(first.get("output_tokens")):
        return "message_start has no usage.output_tokens"
    seen = first["output_tokens"]
    for event in _of(reply, "message_delta"):
        counted = event.get("usage")
        if not isinstance(counted, dict) or not _is_count(counted.get("output_tokens")):
            return "message_delta has no usage.output_tokens"
        if counted["output_tokens"] < seen:
            return f"output_tokens falls from {seen} to {counted['output_tokens']}"
        seen = counted["output_tokens"]
    return None


def ending(reply: Reply) -> str | None:
    """message_delta says why the message ended, with both keys, null included."""
    delta = _first(reply, "message_delta").get("delta")
    if not isinstance(delta, dict):
        return "no message_delta with a delta"
    if not isinstance(delta.get("stop_reason"), str):
        return f"delta.stop_reason is {delta.get('stop_reason', 'missing')!r}"
    return None if "stop_sequence" in delta else "delta.stop_sequence is missing; null is due"


def inputs(reply: Reply) -> str | None:
    """The pieces of a tool's input add up to one JSON object, or to nothing at all."""
    for place, block in enumerate(_content(reply)):
        if "partial_json" in block:
            return f"the input at index {place} is {str(block['partial_json'])[:80]!r}"
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
            return f"the input at index {place} is no object"
    return None


def signatures(reply: Reply) -> str | None:
    """A thinking block has one signature_delta, after all of its thinking."""
    for place, kinds in _deltas_by_block(reply, "thinking"):
        if kinds.count("signature_delta") != 1 or kinds[-1] != "signature_delta":
            return f"the deltas at index {place} are {', '.join(kinds) or 'none'}"
    return None


CHECKS: Final[dict[str, Callable[[Reply], str | None]]] = {
    check.__name__: check
    for check in (
        encoding, lines, frames, data, names, order, first, end, start, opening, growth, filled,
        characters, usage, ending, inputs, signatures,
    )
}  # fmt: skip


def _is_ping(event: Mapping[str, object]) -> bool:
    return event.get("type") == "ping"


def _of(reply: Reply, kind: str) -> Iterator[Json]:
    return (event for event in reply.events if event.get("type") == kind)


def _first(reply: Reply, kind: str) -> Json:
    return next(_of(reply, kind), {})


def _content(reply: Reply) -> list[Json]:
    content = reply.body.get("content") if isinstance(reply.body, dict) else None
    return content if isinstance(content, list) else []


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _deltas_by_block(reply: Reply, kind: str) -> Iterator[tuple[object, list[str]]]:
    """The index of each block of one type, and the types of its deltas."""
    for opened in _of(reply, "content_block_start"):
        block, index = opened.get("content_block"), opened.get("index")
        if not isinstance(block, dict) or block.get("type") != kind:
            continue
        deltas = (e for e in _of(reply, "content_block_delta") if e.get("index") == index)
        parts = (each.get("delta") for each in deltas)
        yield index, [str(part.get("type")) for part in parts if isinstance(part, dict)]
