"""Events to a message: what is shown adds up, whatever kinds of blocks there are."""

from __future__ import annotations

import jiter
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minimsg.parsing.segments import (
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.protocol.build import fold
from minimsg.protocol.events import Event
from minimsg.protocol.grammar import check
from minimsg.protocol.message import Message, StopReason, new_message

from .test_build import CALL, built, events_of


def folded(segments: list[Segment], reason: StopReason = "end_turn") -> Message:
    """The message that `segments` become."""
    start: Event = {"type": "message_start", "message": new_message("m", input_tokens=7)}
    events = [start, *built(segments, reason)]
    assert check(events) is None
    return fold(events)


def test_the_fold_of_every_kind_of_block_is_what_it_shows() -> None:
    thinking, call, text = folded([ThinkingSegment("a"), *CALL, TextSegment("b")])["content"]
    assert thinking == {"type": "thinking", "thinking": "a", "signature": "A"}
    assert call["type"] == "tool_use"
    assert call["input"] == {"a": 1}
    assert text == {"type": "text", "text": "b"}


@pytest.mark.parametrize(
    ("fragments", "input"),
    [
        ([], {}),
        (["{}"], {}),
        (['{"a": [1, 2'], {"a": [1, 2]}),
        (['{"a": 1, "b": "half'], {"a": 1}),
        (['{"a": {"b": tr'], {"a": {}}),
        (['{"a": "\\ud83d\\ude00', '"}'], {"a": "\U0001f600"}),
    ],
)
def test_the_input_of_a_cut_call_is_what_the_sdk_makes_of_it(
    fragments: list[str], input: dict[str, object]
) -> None:
    segments: list[Segment] = [ToolCallStart("add"), *map(ToolCallInput, fragments)]
    (call,) = folded(segments, "max_tokens")["content"]
    assert call["type"] == "tool_use"
    assert call["input"] == input
    if fragments:
        assert call["input"] == jiter.from_json("".join(fragments).encode(), partial_mode=True)


@pytest.mark.parametrize(
    ("segments", "reason", "expected"),
    [
        (CALL, "end_turn", "tool_use"),
        ([*CALL, TextSegment("x")], "end_turn", "tool_use"),
        (CALL[:-1], "max_tokens", "max_tokens"),
        ([*CALL, *CALL[:2]], "max_tokens", "max_tokens"),
        (CALL, "model_context_window_exceeded", "model_context_window_exceeded"),
        ([*CALL, TextSegment("x")], "stop_sequence", "stop_sequence"),
        ([TextSegment("x")], "end_turn", "end_turn"),
    ],
)
def test_a_turn_that_ends_after_a_call_ends_in_tool_use(
    segments: list[Segment], reason: StopReason, expected: str
) -> None:
    assert folded(segments, reason)["stop_reason"] == expected


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
