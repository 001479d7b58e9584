"""Streams whose blocks open wrongly, or whose deltas hold the wrong thing."""

from __future__ import annotations

import json
from typing import Final

from minimsg.misbehave.events import deltas, of, place, without_deltas
from minimsg.misbehave.mutant import Asked, Events, mutants


def text_delta_in_a_call(asked: Asked, events: Events) -> Events:
    """The input of a call comes as text_delta."""
    for delta in deltas(events, "input_json_delta"):
        delta |= {"type": "text_delta", "text": delta.pop("partial_json")}
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
    return without_deltas(events, "input_json_delta")


def input_lost(asked: Asked, events: Events) -> Events:
    """The input of a call does not come."""
    return without_deltas(events, "input_json_delta")


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
    return without_deltas(events, "signature_delta")


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


def characters_replaced(asked: Asked, events: Events) -> Events:
    """A character of several tokens is streamed as U+FFFD."""
    for delta in deltas(events, "text_delta"):
        delta["text"] = "".join("\ufffd" if c > "\uffff" else c for c in delta["text"])
    return events


MUTANTS: Final = mutants(
    "events",
    {
        characters_replaced: "structured.stream*",
        text_delta_in_a_call: "stream.order*",
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
        stop_text_leaked: "stop.*",
    },
)
