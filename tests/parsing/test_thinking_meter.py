"""The ids of thinking are counted to the id, whatever ids the tags are made of."""

from __future__ import annotations

import pytest

from minimsg.parsing.calls import Tools
from minimsg.parsing.formats import parser_for
from minimsg.parsing.thinking import ThinkingMeter, ThinkingTags

NO_TOOLS: Tools = {}
WHOLE_TAGS = ["<think>", "\n", "pl", "an", "</think>", "\n\n", "He", "llo"]


def count(pieces: list[str], *, is_opened: bool = False) -> int:
    """The ids of thinking, each of which is one of `pieces`."""
    parser = parser_for("none", NO_TOOLS, ThinkingTags(is_opened=is_opened))
    meter = ThinkingMeter(parser)
    for piece in pieces:
        parser.push(piece)
        meter.push()
    return meter.num_tokens


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (WHOLE_TAGS, 3),
        (list("<think>plan</think>Hello"), 4),
        (list("<think>a </thin b</think>c"), 10),
        (list("a < b </ c"), 0),
        (list("<think>"), 0),
        (["<think>", "a", "", "", "b"], 4),  # ids that are parts of one character
        (list("<think>a</thi"), 6),  # no more came: it was no tag
        (["<think>", "a", "</think>", "b", "<think>", "c", "d", "</think>"], 3),
        (["<think>", "</think>"], 0),
        (["x</thi", "nk>"], 0),
        ([], 0),
    ],
)
def test_ids_between_the_tags_count_and_those_of_the_tags_do_not(
    pieces: list[str], expected: int
) -> None:
    assert count(pieces) == expected


def test_a_prompt_may_have_opened_it() -> None:
    assert count(WHOLE_TAGS[1:], is_opened=True) == 3
    assert count(list("plan</think>Hello"), is_opened=True) == 4


def test_without_tags_nothing_is_thinking() -> None:
    parser = parser_for("none", NO_TOOLS)
    meter = ThinkingMeter(parser)
    for piece in WHOLE_TAGS:
        parser.push(piece)
        meter.push()
    assert meter.num_tokens == 0
