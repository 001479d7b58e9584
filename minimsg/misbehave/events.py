"""What is found in a stream by its type: events, and the deltas of blocks. Knows no mutant."""

from __future__ import annotations

from typing import Any

from minimsg.misbehave.mutant import Events

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


def without_deltas(events: Events, kind: str) -> Events:
    return [event for event in events if event.get("delta", {}).get("type") != kind]
