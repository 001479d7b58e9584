"""Text of a model without markup is visible text, piece by piece."""

from __future__ import annotations

from minimsg.parsing.segments import PlainParser, TextSegment


def test_plain_text_is_visible_at_once_and_nothing_is_held_back() -> None:
    parser = PlainParser()
    assert parser.push("<tool_call>") == [TextSegment("<tool_call>")]
    assert parser.push("a") == [TextSegment("a")]
    assert parser.flush() == []


def test_a_text_segment_is_never_empty() -> None:
    assert PlainParser().push("") == []
