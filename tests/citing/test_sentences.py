"""Where sentences end, however the text comes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minimsg.citing.sentences import MAX_CHARS, SentenceSplitter, sentence_spans

TEXTS = st.lists(
    st.sampled_from(
        ["The", "ox", ".", "!", " ", "\n", "- ", "1", "e.g.", "。", "」", '"', "J.", "é"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "Go." She went.', ['He said "Go."', "She went."]),
        (
            "It grew 3.5 cm, e.g. in May. Mr. Fox saw.",
            ["It grew 3.5 cm, e.g. in May.", "Mr. Fox saw."],
        ),
        ("So said J. Doe. It is I. Come.", ["So said J. Doe.", "It is I.", "Come."]),
        ("What? no, wait... and then.", ["What? no, wait... and then."]),
        ("wrapped\nline. Next", ["wrapped\nline.", "Next"]),
        ("Title\n\nText", ["Title", "Text"]),
        ("Two:\n- a\n- b\n1. c d", ["Two:", "- a", "- b", "1. c d"]),
        ("晴れ。雨です。「行く。」と", ["晴れ。", "雨です。", "「行く。」", "と"]),
        ("  \n ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert [text[begin:end] for begin, end in sentence_spans(text)] == expected


def test_what_has_no_sentences_is_not_held_back_for_ever() -> None:
    splitter = SentenceSplitter()
    pieces = splitter.push("x" * 2 * MAX_CHARS + "y")
    assert [len(piece) for piece in pieces] == [MAX_CHARS, MAX_CHARS]


def test_no_sentence_is_only_space() -> None:
    splitter = SentenceSplitter()
    assert splitter.push(" " * 2 * MAX_CHARS + "x") == []


@given(TEXTS, st.lists(st.integers(0, 60)))
def test_pieces_give_the_sentences_of_the_whole(text: str, cuts: list[int]) -> None:
    whole, split = SentenceSplitter(), SentenceSplitter()
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    found = [sentence for piece in pieces for sentence in split.push(piece)]
    assert found == whole.push(text)
    rest = split.flush()
    assert rest == whole.flush()
    assert "".join([*found, rest]) == text
