"""Streams whose citations are lost, doubled, in the wrong place, or of the wrong form."""

from __future__ import annotations

from typing import Final

from minimsg.misbehave.events import deltas, of, place, without_deltas
from minimsg.misbehave.mutant import Asked, Events, mutants


def citations_lost(asked: Asked, events: Events) -> Events:
    """Citations are not streamed."""
    return without_deltas(events, "citations_delta")


def citations_twice(asked: Asked, events: Events) -> Events:
    """Each citation is streamed twice."""
    doubled = []
    for event in events:
        doubled += [event] * (2 if event.get("delta", {}).get("type") == "citations_delta" else 1)
    return doubled


def citations_in_a_list(asked: Asked, events: Events) -> Events:
    """A citations_delta has a list of citations."""
    for delta in deltas(events, "citations_delta"):
        delta["citations"] = [delta.pop("citation")]
    return events


def citations_at_the_start(asked: Asked, events: Events) -> Events:
    """A block opens with its citations, and has no citations_delta."""
    for event in of(events, "content_block_start"):
        of_block = [e for e in of(events, "content_block_delta") if e["index"] == event["index"]]
        event["content_block"]["citations"] = [
            delta["citation"] for delta in deltas(of_block, "citations_delta")
        ]
    return citations_lost(asked, events)


def citations_at_the_end(asked: Asked, events: Events) -> Events:
    """Citations come after all blocks."""
    cited = [e for e in events if e.get("delta", {}).get("type") == "citations_delta"]
    rest = citations_lost(asked, events)
    at = place(rest, "message_delta")
    return [*rest[:at], *cited, *rest[at:]]


def citations_alone(asked: Asked, events: Events) -> Events:
    """Citations come in a text block of their own, which is empty."""
    cited = deltas(events, "citations_delta")
    rest = citations_lost(asked, events)
    if not cited:
        return events
    at, index = place(rest, "message_delta"), len(of(rest, "content_block_start"))
    block = {"type": "text", "text": "", "citations": None}
    alone = [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in cited),
        {"type": "content_block_stop", "index": index},
    ]
    return [*rest[:at], *alone, *rest[at:]]


MUTANTS: Final = mutants(
    "events",
    {
        citations_lost: "citations.same",
        citations_twice: "citations.same",
        citations_in_a_list: "citations.stream*",
        citations_at_the_start: "citations.stream*",
        citations_at_the_end: "citations.stream*",
        citations_alone: "citations.stream*",
    },
)
