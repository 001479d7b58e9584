"""A reply's sentences become cited segments, however its text comes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from minimsg.citing.citer import Citer
from minimsg.parsing.segments import (
    CitedSegment,
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallStart,
)
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.grammar import check
from minimsg.protocol.message import Message, new_message

from .test_attribution import TEXTS, index

REPLY = f"So: {TEXTS[0]} I see.\n\n{TEXTS[2]}  {TEXTS[1]}And so"
PARTS = [*TEXTS, "Well then.", " ", "\n\n", "1924", "e.g. "]


def cited(pieces: list[str]) -> Message:
    """The message of a reply that comes in these pieces."""
    citer, builder = Citer(index(*TEXTS)), EventBuilder(new_message("m", 1), is_cited=True)
    segments = [each for piece in pieces if piece for each in citer.push(TextSegment(piece))]
    events = builder.start()
    for segment in [*segments, *citer.flush()]:
        events += builder.push(segment)
    events += builder.finish("end_turn", None, 1)
    assert check(events) is None
    message = fold(events)
    message["id"] = "msg"
    return message


@given(st.lists(st.sampled_from(PARTS)).map("".join), st.lists(st.integers(0, 200)))
def test_any_pieces_fold_to_the_same_message(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    message = cited([text[begin:end] for begin, end in pairwise(places)])
    assert message == cited([text])
    assert "".join(block["text"] for block in message["content"] if block["type"] == "text") == text
    for block in message["content"]:
        assert block["type"] == "text"
        assert all(each["cited_text"] in TEXTS for each in block["citations"] or [])


def test_thinking_and_calls_come_after_the_sentence_before_them() -> None:
    citer = Citer(index(*TEXTS))
    call: list[Segment] = [ThinkingSegment(TEXTS[0]), ToolCallStart("look")]
    assert citer.push(TextSegment("A flood of 1924")) == []
    segments = [each for segment in call for each in citer.push(segment)]
    assert isinstance(segments[0], CitedSegment)
    assert segments[1:] == call


def test_tokens_tell_of_the_sentence_that_they_begin_in() -> None:
    """Two passages have the same words: what the tokens attended to decides, for each anew."""
    twins = index("The grey owl sleeps.", "Grey owls sleep.", "Ants dig.")
    citer = Citer(twins)
    found: list[Segment] = []
    for text, attended in [
        ("Grey", (0.9, 0.1, 0.0)),
        (" owls sleep.", (0.8, 0.1, 0.0)),
        (" Grey", (0.1, 0.9, 0.0)),
        (" owls sleep.", (0.1, 0.7, 0.0)),
    ]:
        citer.attend(attended)
        found += citer.push(TextSegment(text))
    found += citer.flush()
    texts = [each.citations[0]["cited_text"] for each in found if isinstance(each, CitedSegment)]
    assert texts == ["The grey owl sleeps.", "Grey owls sleep."]
