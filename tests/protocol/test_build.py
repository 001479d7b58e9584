"""Segments to events to a message: the order, the numbers, the fold."""

from __future__ import annotations

import re

from minimsg.engine.types import FinishReason
from minimsg.parsing.segments import (
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.events import Event
from minimsg.protocol.message import STOP_REASONS, StopReason, new_id, new_message


def events_of(texts: list[str]) -> list[Event]:
    builder = EventBuilder(new_message("m", input_tokens=7))
    events = builder.start()
    for text in texts:
        events += builder.push(TextSegment(text))
    return events + builder.finish("stop_sequence", "END", output_tokens=5)


def test_a_reply_of_two_pieces_is_these_events() -> None:
    events = events_of(["He", "llo"])
    start, *rest = events
    assert start["type"] == "message_start"
    assert start["message"]["content"] == []
    assert start["message"]["stop_reason"] is None
    assert start["message"]["usage"]["input_tokens"] == 7
    assert rest == [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {"type": "ping"},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "He"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "llo"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {
                "stop_reason": "stop_sequence",
                "stop_sequence": "END",
                "stop_details": None,
            },
            "usage": {
                "input_tokens": 7,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 5,
            },
        },
        {"type": "message_stop"},
    ]


def test_an_empty_reply_has_no_block() -> None:
    events = events_of([])
    assert [event["type"] for event in events] == ["message_start", "message_delta", "message_stop"]
    assert fold(events)["content"] == []


def built(segments: list[Segment], reason: StopReason = "end_turn") -> list[Event]:
    """The events of a reply, less message_start, with ids that are known."""
    builder = EventBuilder(new_message("m", input_tokens=7), sign=lambda thinking: thinking.upper())
    events = [event for segment in segments for event in builder.push(segment)]
    return events + builder.finish(reason, None, output_tokens=5)


def short(events: list[Event]) -> list[object]:
    """Events as one word and what is new in them."""
    found: list[object] = []
    for event in events:
        if event["type"] == "content_block_start":
            found.append((event["index"], event["content_block"]["type"]))
        elif event["type"] == "content_block_delta":
            found.append((event["index"], list(event["delta"].values())))
        elif event["type"] == "content_block_stop":
            found.append((event["index"], "stop"))
        elif event["type"] == "message_delta":
            found.append(event["delta"]["stop_reason"])
    return found


CALL: list[Segment] = [
    ToolCallStart("add"),
    ToolCallInput('{"a": 1'),
    ToolCallInput("}"),
    ToolCallEnd(),
]


def test_blocks_follow_each_other_and_only_one_is_open() -> None:
    segments = [ThinkingSegment("pl"), ThinkingSegment("an"), TextSegment("x"), *CALL, *CALL]
    assert short(built([*segments, TextSegment("y")])) == [
        (0, "thinking"),
        (0, ["thinking_delta", "pl"]),
        (0, ["thinking_delta", "an"]),
        (0, ["signature_delta", "PLAN"]),
        (0, "stop"),
        (1, "text"),
        (1, ["text_delta", "x"]),
        (1, "stop"),
        *[
            step
            for index in (2, 3)
            for step in [
                (index, "tool_use"),
                (index, ["input_json_delta", ""]),
                (index, ["input_json_delta", '{"a": 1']),
                (index, ["input_json_delta", "}"]),
                (index, "stop"),
            ]
        ],
        (4, "text"),
        (4, ["text_delta", "y"]),
        (4, "stop"),
        "tool_use",
    ]


def test_a_tool_use_block_starts_with_its_id_and_an_empty_input() -> None:
    start, ping, *_ = built(CALL)
    assert start["type"] == "content_block_start"
    block = start["content_block"]
    assert block["type"] == "tool_use"
    assert re.fullmatch(r"toolu_01[0-9A-Za-z]{22}", block["id"])
    assert (block["name"], block["input"]) == ("add", {})
    assert block["caller"] == {"type": "direct"}
    assert ping == {"type": "ping"}


def test_a_thinking_block_starts_empty() -> None:
    start = built([ThinkingSegment("a")])[0]
    assert start["type"] == "content_block_start"
    assert start["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}


def test_omitted_thinking_shows_its_signature_only() -> None:
    builder = EventBuilder(new_message("m", 7), display="omitted", sign=lambda _: "S")
    events = builder.push(ThinkingSegment("plan")) + builder.push(TextSegment("x"))
    assert short(events) == [
        (0, "thinking"),
        (0, ["signature_delta", "S"]),
        (0, "stop"),
        (1, "text"),
        (1, ["text_delta", "x"]),
    ]


def test_thinking_that_nobody_asked_for_is_not_shown() -> None:
    builder = EventBuilder(new_message("m", 7), display="none")
    segments: list[Segment] = [TextSegment("x"), ThinkingSegment("plan"), TextSegment("y")]
    events = [event for segment in segments for event in builder.push(segment)]
    assert short(events) == [
        (0, "text"),
        (0, ["text_delta", "x"]),
        (0, "stop"),
        (1, "text"),
        (1, ["text_delta", "y"]),
    ]


def test_every_way_to_succeed_has_a_stop_reason() -> None:
    failures = {FinishReason.CANCELLED, FinishReason.ERROR}
    assert set(STOP_REASONS) == set(FinishReason) - failures


def test_ids_are_opaque_and_differ() -> None:
    ids = {new_id("msg_") for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"msg_01[0-9A-Za-z]{22}", id) for id in ids)
