"""Streams that are wrong: events lost, doubled, out of order, or holding the wrong thing."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.misbehave.mutant import Asked, Events, Mutant, Table

Event = dict[str, Any]


def of(events: Events, kind: str) -> Events:
    return [event for event in events if event["type"] == kind]


def without(events: Events, kind: str) -> Events:
    return [event for event in events if event["type"] != kind]


def place(events: Events, kind: str) -> int:
    """Where the first event of one type is; the end where there is none."""
    kinds = [event["type"] for event in events]
    return kinds.index(kind) if kind in kinds else len(events)


def deltas(events: Events, kind: str) -> list[Event]:
    return [e["delta"] for e in of(events, "content_block_delta") if e["delta"]["type"] == kind]


def two_message_starts(asked: Asked, events: Events) -> Events:
    """message_start comes twice."""
    return [events[0], *events]


def no_message_start(asked: Asked, events: Events) -> Events:
    """The stream begins without message_start."""
    return without(events, "message_start")


def no_message_stop(asked: Asked, events: Events) -> Events:
    """message_stop is missing."""
    return without(events, "message_stop")


def no_message_delta(asked: Asked, events: Events) -> Events:
    """message_delta is missing."""
    return without(events, "message_delta")


def no_block_stop(asked: Asked, events: Events) -> Events:
    """Blocks are not closed."""
    return without(events, "content_block_stop")


def no_block_start(asked: Asked, events: Events) -> Events:
    """Blocks are not opened."""
    return without(events, "content_block_start")


def lost_ping(asked: Asked, events: Events) -> Events:
    """There are no pings."""
    return without(events, "ping")


def index_from_one(asked: Asked, events: Events) -> Events:
    """Blocks are numbered from 1."""
    for event in events:
        if "index" in event:
            event["index"] += 1
    return events


def no_index(asked: Asked, events: Events) -> Events:
    """Events of blocks have no index."""
    for event in events:
        event.pop("index", None)
    return events


def index_as_text(asked: Asked, events: Events) -> Events:
    """The index is a text."""
    for event in events:
        if "index" in event:
            event["index"] = str(event["index"])
    return events


def delta_of_another_index(asked: Asked, events: Events) -> Events:
    """The last delta is of a block that is not open."""
    for event in of(events, "content_block_delta")[-1:]:
        event["index"] += 3
    return events


def empty_text_block_first(asked: Asked, events: Events) -> Events:
    """An empty text block comes before everything else."""
    moved = index_from_one(asked, events)
    opened = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    return [moved[0], opened, {"type": "content_block_stop", "index": 0}, *moved[1:]]


def delta_after_stop(asked: Asked, events: Events) -> Events:
    """A delta comes after the end of its block."""
    late = of(events, "content_block_delta")[-1:]
    at = place(events, "message_delta")
    return [*events[:at], *late, *events[at:]]


def message_delta_too_early(asked: Asked, events: Events) -> Events:
    """message_delta comes while a block is open."""
    at = place(events, "content_block_stop")
    early = of(events, "message_delta")
    rest = [event for event in events[at:] if event["type"] != "message_delta"]
    return [*events[:at], *early, *rest]


def ping_after_the_end(asked: Asked, events: Events) -> Events:
    """A ping comes after message_stop."""
    return [*events, {"type": "ping"}]


def stop_twice(asked: Asked, events: Events) -> Events:
    """message_stop comes twice."""
    return [*events, events[-1]]


def text_delta_in_a_call(asked: Asked, events: Events) -> Events:
    """The input of a call comes as text_delta."""
    for delta in deltas(events, "input_json_delta"):
        delta |= {"type": "text_delta", "text": delta.pop("partial_json")}
    return events


def start_without_usage(asked: Asked, events: Events) -> Events:
    """message_start has no usage."""
    events[0]["message"].pop("usage")
    return events


def start_counts_nothing(asked: Asked, events: Events) -> Events:
    """message_start says that the prompt has no tokens."""
    usage = events[0]["message"]["usage"]
    usage |= dict.fromkeys(
        ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), 0
    )
    return events


def start_estimates(asked: Asked, events: Events) -> Events:
    """The count of message_start is another one than at the end."""
    usage = events[0]["message"]["usage"]
    for event in of(events, "message_delta"):
        event["usage"]["input_tokens"] = usage["input_tokens"]
    usage["input_tokens"] += 5
    return events


def start_holds_content(asked: Asked, events: Events) -> Events:
    """message_start already has content."""
    events[0]["message"]["content"] = [{"type": "text", "text": "Hello"}]
    return events


def start_without_content(asked: Asked, events: Events) -> Events:
    """message_start has no content."""
    events[0]["message"].pop("content")
    return events


def start_with_stop_reason(asked: Asked, events: Events) -> Events:
    """message_start already has a stop_reason."""
    events[0]["message"]["stop_reason"] = "end_turn"
    return events


def start_without_stop_reason(asked: Asked, events: Events) -> Events:
    """message_start leaves stop_reason out."""
    events[0]["message"].pop("stop_reason")
    return events


def start_without_id(asked: Asked, events: Events) -> Events:
    """The message of message_start has no id."""
    events[0]["message"].pop("id")
    return events


def start_without_model(asked: Asked, events: Events) -> Events:
    """The message of message_start names no model."""
    events[0]["message"].pop("model")
    return events


def delta_without_usage(asked: Asked, events: Events) -> Events:
    """message_delta has no usage."""
    for event in of(events, "message_delta"):
        event.pop("usage")
    return events


def usage_shrinks(asked: Asked, events: Events) -> Events:
    """usage is not cumulative: message_delta counts less than message_start."""
    events[0]["message"]["usage"]["output_tokens"] = 8
    for event in of(events, "message_delta"):
        event["usage"]["output_tokens"] = 1
    return events


def output_not_counted(asked: Asked, events: Events) -> Events:
    """message_delta counts no output."""
    events[0]["message"]["usage"]["output_tokens"] = 0
    for event in of(events, "message_delta"):
        event["usage"]["output_tokens"] = 0
    return events


def no_stop_sequence_key(asked: Asked, events: Events) -> Events:
    """message_delta leaves stop_sequence out."""
    events[0]["message"].pop("stop_sequence", None)
    for event in of(events, "message_delta"):
        event["delta"].pop("stop_sequence")
    return events


def delta_without_stop_reason(asked: Asked, events: Events) -> Events:
    """message_delta has stop_reason null."""
    for event in of(events, "message_delta"):
        event["delta"]["stop_reason"] = None
    return events


def half_a_character(asked: Asked, events: Events) -> Events:
    """A delta ends inside a character."""
    for delta in deltas(events, "text_delta")[:1]:
        delta["text"] += "\ud83d"
    return events


def opened_with_text(asked: Asked, events: Events) -> Events:
    """A text block opens with text in it."""
    for event in of(events, "content_block_start"):
        if event["content_block"]["type"] == "text":
            event["content_block"]["text"] = "He"
    return events


def opened_without_text(asked: Asked, events: Events) -> Events:
    """A text block opens without the key text."""
    for event in of(events, "content_block_start"):
        event["content_block"].pop("text", None)
    return events


def opened_without_input(asked: Asked, events: Events) -> Events:
    """A call opens without input."""
    for event in of(events, "content_block_start"):
        event["content_block"].pop("input", None)
    return events


def input_at_once(asked: Asked, events: Events) -> Events:
    """A call opens with its whole input, and has no deltas."""
    whole = "".join(delta["partial_json"] for delta in deltas(events, "input_json_delta"))
    for event in of(events, "content_block_start"):
        if event["content_block"]["type"] == "tool_use":
            event["content_block"]["input"] = json.loads(whole or "{}")
    return [e for e in events if e.get("delta", {}).get("type") != "input_json_delta"]


def input_lost(asked: Asked, events: Events) -> Events:
    """The input of a call does not come."""
    return [e for e in events if e.get("delta", {}).get("type") != "input_json_delta"]


def input_cut(asked: Asked, events: Events) -> Events:
    """The last piece of a call's input does not come."""
    last = [d for d in deltas(events, "input_json_delta") if d["partial_json"]][-1:]
    return [event for event in events if event.get("delta") not in last or not last]


def input_twice(asked: Asked, events: Events) -> Events:
    """The pieces of a call's input repeat what came before."""
    so_far = ""
    for delta in deltas(events, "input_json_delta"):
        so_far += delta["partial_json"]
        delta["partial_json"] = so_far
    return events


def delta_without_text(asked: Asked, events: Events) -> Events:
    """A text_delta has no text."""
    for delta in deltas(events, "text_delta")[:1]:
        delta["text"] = None
    return events


def text_at_once(asked: Asked, events: Events) -> Events:
    """The text comes at the end, in one piece."""
    found = deltas(events, "text_delta")
    whole = "".join(delta["text"] for delta in found)
    for delta in found:
        delta["text"] = ""
    for delta in found[-1:]:
        delta["text"] = whole
    return [e for e in events if e.get("delta", {}).get("text") != ""]


def text_twice(asked: Asked, events: Events) -> Events:
    """Deltas of text repeat what came before."""
    so_far = ""
    for delta in deltas(events, "text_delta"):
        so_far += delta["text"]
        delta["text"] = so_far
    return events


def last_words_lost(asked: Asked, events: Events) -> Events:
    """The last text_delta does not come."""
    last = [e for e in events if e.get("delta", {}).get("type") == "text_delta"][-1:]
    return [event for event in events if event not in last]


def signature_lost(asked: Asked, events: Events) -> Events:
    """A thinking block has no signature_delta."""
    return [e for e in events if e.get("delta", {}).get("type") != "signature_delta"]


def signature_in_two(asked: Asked, events: Events) -> Events:
    """The signature comes in two deltas."""
    doubled = []
    for event in events:
        doubled += [event] * (2 if event.get("delta", {}).get("type") == "signature_delta" else 1)
    return doubled


def thinking_as_text(asked: Asked, events: Events) -> Events:
    """Thinking is streamed as text, with its tags."""
    for event in of(events, "content_block_start"):
        if event["content_block"]["type"] == "thinking":
            event["content_block"] = {"type": "text", "text": ""}
    for delta in deltas(events, "thinking_delta"):
        delta |= {"type": "text_delta", "text": f"<think>{delta.pop('thinking')}</think>"}
    return signature_lost(asked, events)


def streamed_model_differs(asked: Asked, events: Events) -> Events:
    """A stream names another model than a plain answer."""
    events[0]["message"]["model"] += "-stream"
    return events


def streamed_reason_differs(asked: Asked, events: Events) -> Events:
    """A stream always ends with end_turn."""
    for event in of(events, "message_delta"):
        event["delta"] |= {"stop_reason": "end_turn", "stop_sequence": None}
    return events


def stop_text_leaked(asked: Asked, events: Events) -> Events:
    """The stop sequence is streamed as text before the end."""
    ends = of(events, "message_delta")
    said = ends[0]["delta"].get("stop_sequence") if ends else None
    at = place(events, "content_block_stop")
    if not said or at == len(events):
        return events
    leak = {"type": "text_delta", "text": said}
    event = {"type": "content_block_delta", "index": events[at]["index"], "delta": leak}
    return [*events[:at], event, *events[at:]]


def one_id_for_all(asked: Asked, events: Events) -> Events:
    """Every streamed message has the same id."""
    events[0]["message"]["id"] = "msg_01"
    return events


def no_names(data: bytes) -> bytes:
    """Frames have no event line."""
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"event:"))


def wrong_names(data: bytes) -> bytes:
    """Every frame is called message."""
    lines = data.split(b"\n")
    return b"\n".join(b"event: message" if x.startswith(b"event:") else x for x in lines)


def done_at_the_end(data: bytes) -> bytes:
    """The stream ends with data: [DONE]."""
    return data + b"data: [DONE]\n\n"


def bad_utf8(data: bytes) -> bytes:
    """A byte of a stream is no UTF-8."""
    return data.replace(b'"text_delta","text":"', b'"text_delta","text":"\xff', 1)


def no_last_blank_line(data: bytes) -> bytes:
    """The last frame has no blank line after it."""
    return data[:-1]


def no_blank_lines(data: bytes) -> bytes:
    """Frames are not parted by blank lines."""
    return data.replace(b"\n\n", b"\n")


def raw_line_break(data: bytes) -> bytes:
    """A line break inside data is not escaped."""
    return data.replace(b'"type":"message_stop"', b'"type":\n"message_stop"')


def no_field(data: bytes) -> bytes:
    """Lines of a stream have no field name."""
    return data.replace(b"data: ", b"", 1)


def python_repr(data: bytes) -> bytes:
    """Data is Python's repr, not JSON."""
    return data.replace(b'{"type":"message_stop"}', b"{'type': 'message_stop'}")


EVENTS: Final = Table(
    "events",
    {
        two_message_starts: "stream.o*",
        no_message_start: "stream.o*",
        no_message_stop: "stream.[eo]*",
        no_message_delta: "stream.[eo]*",
        no_block_stop: "stream.order*",
        no_block_start: "stream.order*",
        lost_ping: "stream.ping",
        index_from_one: "stream.order*",
        no_index: "stream.order*",
        index_as_text: "stream.order*",
        delta_of_another_index: "stream.order*",
        empty_text_block_first: "stream.filled*",
        delta_after_stop: "stream.order*",
        message_delta_too_early: "stream.order*",
        ping_after_the_end: "stream.end*",
        stop_twice: "stream.o*",
        text_delta_in_a_call: "stream.order*",
        start_without_usage: "stream.usage*",
        start_counts_nothing: "stream.prompt-tokens*",
        start_estimates: "message.usage-streamed",
        start_holds_content: "stream.start*",
        start_without_content: "stream.start*",
        start_with_stop_reason: "stream.start*",
        start_without_stop_reason: "stream.start*",
        start_without_id: "stream.message*",
        start_without_model: "stream.message*",
        delta_without_usage: "stream.usage*",
        usage_shrinks: "stream.usage*",
        output_not_counted: "message.usage*",
        no_stop_sequence_key: "stream.ending*",
        delta_without_stop_reason: "stream.ending*",
        half_a_character: "stream.characters*",
        opened_with_text: "stream.opening*",
        opened_without_text: "stream.opening*",
        opened_without_input: "stream.opening*",
        input_at_once: "stream.opening*",
        input_lost: "stream.input*",
        input_cut: "stream.input*",
        input_twice: "stream.input*",
        delta_without_text: "stream.growth*",
        text_at_once: "stream.pieces",
        text_twice: "stream.same*",
        last_words_lost: "stream.same*",
        signature_lost: "stream.signatures",
        signature_in_two: "stream.signatures",
        thinking_as_text: "thinking.*",
        streamed_model_differs: "stream.same*",
        streamed_reason_differs: "stream.same*",
        stop_text_leaked: "stop.*",
        one_id_for_all: "message.id*",
    },
)
FRAMES: Final = Table(
    "frames",
    {
        no_names: "stream.names*",
        wrong_names: "stream.names*",
        done_at_the_end: "stream.[ed]*",
        bad_utf8: "stream.encoding*",
        no_last_blank_line: "stream.frames*",
        no_blank_lines: "stream.*",
        raw_line_break: "stream.[ld]*",
        no_field: "stream.[ld]*",
        python_repr: "stream.data*",
    },
)
MUTANTS: Final[list[Mutant]] = EVENTS.mutants() + FRAMES.mutants()
