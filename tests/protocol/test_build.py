"""Segments to events to a message: the order, the numbers, the fold."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from minimsg.engine.types import FinishReason
from minimsg.parsing.segments import TextSegment
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.events import Event
from minimsg.protocol.grammar import check
from minimsg.protocol.message import STOP_REASONS, new_id, new_message


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
            "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
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


@given(st.lists(st.text(min_size=1)))
def test_the_fold_of_any_reply_is_its_text_and_its_ending(texts: list[str]) -> None:
    events = events_of(texts)
    assert check(events) is None
    message = fold(events)
    shown = [block["text"] for block in message["content"] if block["type"] == "text"]
    assert "".join(shown) == "".join(texts)
    assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")
    assert message["usage"]["output_tokens"] == 5
    assert message["usage"]["service_tier"] == "standard"


def test_the_fold_leaves_the_events_as_they_are() -> None:
    events = events_of(["x"])
    fold(events)
    assert events == [{**events[0]}, *events[1:]]
    assert events[0]["type"] == "message_start"
    assert events[0]["message"]["content"] == []


def test_every_way_to_succeed_has_a_stop_reason() -> None:
    failures = {FinishReason.CANCELLED, FinishReason.ERROR}
    assert set(STOP_REASONS) == set(FinishReason) - failures


def test_ids_are_opaque_and_differ() -> None:
    ids = {new_id("msg_") for _ in range(100)}
    assert len(ids) == 100
    assert all(re.fullmatch(r"msg_01[0-9A-Za-z]{22}", id) for id in ids)
