"""Which passages a sentence was taken from, by its words."""

from __future__ import annotations

import pytest

from minimsg.citing.attribution import MAX_POSTINGS, Index, index_of, sources_of
from minimsg.citing.passages import Passage
from minimsg.protocol.cited import CharCitation

TEXTS = [
    "The mill on the Brenn was built in 1871 by Ada Holt.",
    "Its wheel turned until the flood of 1924.",
    "Today the mill holds a museum of paper.",
    "Visitors may press a sheet of their own.",
    "The museum is closed in winter.",
]


def index(*texts: str) -> Index:
    passages = []
    for number, text in enumerate(texts):
        citation: CharCitation = {
            "type": "char_location",
            "cited_text": text,
            "document_index": number,
            "document_title": None,
            "file_id": None,
            "start_char_index": 0,
            "end_char_index": len(text),
        }
        passages.append(Passage(citation, "messages.0.content.0", 0, len(text)))
    return index_of(passages)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ada Holt built the mill in 1871.", [0]),
        ("1924", [1]),
        ("The wheels were turning until a flood came in 1924.", [1]),
        ("The mill holds paper today, visitors may press a sheet.", [3, 2]),
        ("Bananas grow in the tropics.", []),
        ("The mill was sold to a bank in Paris for ten francs.", []),  # one word is not enough
        ("It is so.", []),  # no word that says anything
        ("", []),
    ],
)
def test_a_sentence_comes_from_what_has_its_words(sentence: str, expected: list[int]) -> None:
    found = sources_of(sentence, index(*TEXTS))
    assert [passage.text for passage in found] == [TEXTS[number] for number in expected]


def test_of_two_passages_with_the_same_words_the_shorter_one_is_cited() -> None:
    found = sources_of("Blue whales.", index("Blue whales sing at night.", "Blue whales.", "Ants."))
    assert [passage.text for passage in found] == ["Blue whales."]


def test_a_word_that_is_everywhere_is_not_searched() -> None:
    common = index(*["otter"] * (MAX_POSTINGS + 1))
    assert common.postings == {}
    assert sources_of("Otter.", common) == []
