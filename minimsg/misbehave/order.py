"""Streams in which events are lost, doubled, out of order, or of another index."""

from __future__ import annotations

from typing import Final

from minimsg.misbehave.events import of, place, without
from minimsg.misbehave.mutant import Asked, Events, mutants


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


def ping_first(asked: Asked, events: Events) -> Events:
    """A ping comes before message_start."""
    return [{"type": "ping"}, *events]


def stop_twice(asked: Asked, events: Events) -> Events:
    """message_stop comes twice."""
    return [*events, events[-1]]


MUTANTS: Final = mutants(
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
        ping_first: "stream.first*",
        ping_after_the_end: "stream.end*",
        stop_twice: "stream.o*",
    },
)
