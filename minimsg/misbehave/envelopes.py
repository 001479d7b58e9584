"""Streams whose message_start or message_delta says something wrong of the message."""

from __future__ import annotations

from typing import Final

from minimsg.misbehave.events import of
from minimsg.misbehave.mutant import Asked, Events, mutants


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


def streamed_model_differs(asked: Asked, events: Events) -> Events:
    """A stream names another model than a plain answer."""
    events[0]["message"]["model"] += "-stream"
    return events


def streamed_reason_differs(asked: Asked, events: Events) -> Events:
    """A stream always ends with end_turn."""
    for event in of(events, "message_delta"):
        event["delta"] |= {"stop_reason": "end_turn", "stop_sequence": None}
    return events


def one_id_for_all(asked: Asked, events: Events) -> Events:
    """Every streamed message has the same id."""
    events[0]["message"]["id"] = "msg_01"
    return events


MUTANTS: Final = mutants(
    "events",
    {
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
        streamed_model_differs: "stream.same*",
        streamed_reason_differs: "stream.same*",
        one_id_for_all: "message.id*",
    },
)
