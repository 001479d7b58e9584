"""The oracle looks for stop sequences in the whole text, the slow and obvious way."""

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minimsg.parsing.segments import (
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.text.stops import StopMatcher


def whole_text(sequences: list[str], text: str) -> tuple[str, str | None]:
    """Text before the first match to complete, and the longest that completes there."""
    for end in range(len(text) + 1):
        matches = [sequence for sequence in sequences if text[:end].endswith(sequence)]
        if matches:
            match = max(matches, key=len)
            return text[: end - len(match)], match
    return text, None


def text_of(segments: list[Segment]) -> str:
    texts = [segment.text for segment in segments if isinstance(segment, TextSegment)]
    assert len(texts) == len(segments)
    assert all(texts), "a text segment is never empty"
    return "".join(texts)


def matched(sequences: list[str], pieces: list[str]) -> tuple[str, str | None]:
    stops = StopMatcher(sequences)
    shown = "".join(text_of(stops.push(TextSegment(piece))) for piece in pieces if piece)
    return shown + text_of(stops.flush()), stops.hit


def all_splits(text: str) -> list[list[str]]:
    """Every way to cut `text`: 2 ** (len - 1) of them."""
    splits = []
    for cuts in product([False, True], repeat=max(0, len(text) - 1)):
        pieces = [""]
        for character, is_cut in zip(text, (False, *cuts), strict=False):
            if is_cut:
                pieces.append("")
            pieces[-1] += character
        splits.append(pieces)
    return splits


@pytest.mark.parametrize(
    ("sequences", "text"),
    [
        (["</end>"], "ab</end>x"),
        (["</end>"], "hello </e"),
        (["STOP"], "a STOSTOP"),
        (["aab"], "aaaab"),
        (["ab", "abc"], "xabcd"),
        (["bc", "abcd"], "xabcd"),
        (["b", "ab"], "xxab"),
        (["abcd", "bcx"], "abcx"),
        (["\n\n", "\n"], "a\n\nb"),
        (["é"], "cafés"),
        (["aa"], "a"),
        ([], "anything"),
        (["x"], ""),
    ],
)
def test_every_split_gives_what_the_whole_text_gives(sequences: list[str], text: str) -> None:
    expected = whole_text(sequences, text)
    for pieces in all_splits(text):
        assert matched(sequences, pieces) == expected


small = st.text("ab", min_size=1, max_size=5)


@settings(max_examples=1_000)
@given(st.lists(small, max_size=6), st.lists(st.text("abc", max_size=4), max_size=8))
def test_any_text_in_any_pieces_gives_what_the_whole_text_gives(
    sequences: list[str], pieces: list[str]
) -> None:
    assert matched(sequences, pieces) == whole_text(sequences, "".join(pieces))


@settings(max_examples=300)
@given(st.lists(small, max_size=6), st.text("abc", max_size=12))
def test_no_more_is_held_back_than_may_become_a_match(sequences: list[str], text: str) -> None:
    stops = StopMatcher(sequences)
    shown = text_of(stops.push(TextSegment(text))) if text else ""
    if stops.hit is None:
        starts = (start for start in range(len(text)))
        held = next(
            (s for s in starts if any(q.startswith(text[s:]) for q in sequences)), len(text)
        )
        assert shown == text[:held]


def test_a_stop_sequence_over_two_pieces_is_not_shown() -> None:
    stops = StopMatcher(["</end>"])
    assert stops.push(TextSegment("ab")) == [TextSegment("ab")]
    assert stops.push(TextSegment("</e")) == []
    assert stops.push(TextSegment("nd>x")) == []
    assert stops.hit == "</end>"


def test_after_a_hit_nothing_comes() -> None:
    stops = StopMatcher(["."])
    assert stops.push(TextSegment("One. Two")) == [TextSegment("One")]
    assert stops.push(TextSegment("Three")) == []
    assert stops.flush() == []


def test_half_a_match_at_the_end_is_shown() -> None:
    stops = StopMatcher(["</end>"])
    assert stops.push(TextSegment("hello </e")) == [TextSegment("hello ")]
    assert stops.flush() == [TextSegment("</e")]
    assert stops.hit is None


def test_a_tool_call_shows_what_was_held_before_it_and_is_not_looked_into() -> None:
    stops = StopMatcher(["STOP"])
    call: list[Segment] = [ToolCallStart("now"), ToolCallInput('{"zone": "STOP"}'), ToolCallEnd()]
    assert stops.push(TextSegment("a ST")) == [TextSegment("a ")]
    shown = [part for segment in call for part in stops.push(segment)]
    assert shown == [TextSegment("ST"), *call]
    assert stops.push(TextSegment("OP")) == [TextSegment("OP")], "no match reaches over a call"
    assert stops.hit is None


def test_thinking_is_not_looked_into_and_after_a_hit_it_does_not_come() -> None:
    stops = StopMatcher(["STOP"])
    assert stops.push(ThinkingSegment("STOP")) == [ThinkingSegment("STOP")]
    assert stops.push(TextSegment("STOP")) == []
    assert stops.push(ThinkingSegment("more")) == []
    assert stops.push(ToolCallStart("now")) == []


ADVERSARIAL = {
    "one of a's, never complete": (["a" * 4096], ("a" * 4095 + "b") * 4),
    "many that differ at the end": ([f"{'a' * 4091}{n:05d}" for n in range(8192)], "a" * 20_000),
    "many that differ in front": ([f"{n:05d}{'a' * 4091}" for n in range(8192)], "a" * 20_000),
    "many of all lengths": (["b" + "a" * n for n in range(4095)], "a" * 20_000),
    "a b at each place": (["a" * n + "b" + "a" * (4095 - n) for n in range(4096)], "a" * 20_000),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_worst_stop_sequences_cost_less_than_a_millisecond_a_character(name: str) -> None:
    sequences, text = ADVERSARIAL[name]
    stops = StopMatcher(sequences)
    start = time.process_time()
    text_of(stops.push(TextSegment(text)))
    assert time.process_time() - start < 1e-3 * len(text)
    assert stops.hit is None
