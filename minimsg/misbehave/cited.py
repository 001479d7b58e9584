"""Citations that are wrong: what they quote, and where they say that it stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from minimsg.misbehave.blocks import map_blocks
from minimsg.misbehave.mutant import Answered, Asked, mutants

Citation = dict[str, Any]


def map_citations(answered: Answered, change: Callable[[Citation], Citation | None]) -> None:
    """Change every citation of a message; None drops it."""

    def cited(block: dict[str, Any]) -> dict[str, Any]:
        if not block.get("citations"):
            return block
        changed = [change(each) for each in block["citations"]]
        return block | {"citations": [each for each in changed if each] or None}

    map_blocks(answered, "text", cited)


def moved(citation: Citation, by: int, *keys: str) -> Citation:
    """A citation with some of its numbers changed."""
    return citation | {key: citation[key] + by for key in keys if key in citation}


def always_cited(asked: Asked, answered: Answered) -> None:
    """A document is cited, whether that was wished or not."""
    whole = {"type": "char_location", "cited_text": "x", "document_index": 0}
    found = whole | {"start_char_index": 0, "end_char_index": 1}
    if b'"document"' in asked.body:
        map_blocks(answered, "text", lambda block: {"citations": [found]} | block)


def quote_trimmed(asked: Asked, answered: Answered) -> None:
    """A quote lacks its last character."""
    map_citations(answered, lambda each: each | {"cited_text": each["cited_text"][:-1]})


def quote_of_the_reply(asked: Asked, answered: Answered) -> None:
    """What is quoted is the reply."""
    map_blocks(
        answered,
        "text",
        lambda block: (
            block
            | {"citations": [c | {"cited_text": block["text"] + "!"} for c in block["citations"]]}
            if block.get("citations")
            else block
        ),
    )


def characters_from_one(asked: Asked, answered: Answered) -> None:
    """Characters are counted from 1."""
    keys = ("start_char_index", "end_char_index")
    map_citations(answered, lambda each: moved(each, 1, *keys))


def last_character_included(asked: Asked, answered: Answered) -> None:
    """end_char_index is the last character, not the one after."""
    map_citations(answered, lambda each: moved(each, -1, "end_char_index"))


def bytes_for_characters(asked: Asked, answered: Answered) -> None:
    """Bytes are counted where characters are due."""
    _recounted(asked, answered, lambda text: len(text.encode()))


def units_for_characters(asked: Asked, answered: Answered) -> None:
    """UTF-16 units are counted where characters are due."""
    _recounted(asked, answered, lambda text: len(text.encode("utf-16-le")) // 2)


def pages_from_zero(asked: Asked, answered: Answered) -> None:
    """Pages are counted from 0."""
    keys = ("start_page_number", "end_page_number")
    map_citations(answered, lambda each: moved(each, -1, *keys))


def last_page_included(asked: Asked, answered: Answered) -> None:
    """end_page_number is the last page, not the one after."""
    map_citations(answered, lambda each: moved(each, -1, "end_page_number"))


def blocks_from_one(asked: Asked, answered: Answered) -> None:
    """Blocks are counted from 1."""
    keys = ("start_block_index", "end_block_index")
    map_citations(answered, lambda each: moved(each, 1, *keys))


def documents_from_one(asked: Asked, answered: Answered) -> None:
    """Documents are counted from 1."""
    map_citations(answered, lambda each: moved(each, 1, "document_index"))


def first_document_cited(asked: Asked, answered: Answered) -> None:
    """Every citation is of the first document."""
    map_citations(answered, lambda each: {**each, "document_index": 0})


def results_from_one(asked: Asked, answered: Answered) -> None:
    """Search results are counted from 1."""
    map_citations(answered, lambda each: moved(each, 1, "search_result_index"))


def results_as_documents(asked: Asked, answered: Answered) -> None:
    """A search result is cited as a document in blocks."""

    def change(each: Citation) -> Citation:
        if each["type"] != "search_result_location":
            return each
        named = {"document_index": each["search_result_index"], "document_title": each["title"]}
        return each | named | {"type": "content_block_location"}

    map_citations(answered, change)


def source_lost(asked: Asked, answered: Answered) -> None:
    """A citation of a search result does not name its source."""
    map_citations(answered, lambda each: {k: v for k, v in each.items() if k != "source"})


def title_lost(asked: Asked, answered: Answered) -> None:
    """A citation has no title."""
    map_citations(answered, lambda each: {**each, "document_title": None, "title": None})


def file_lost(asked: Asked, answered: Answered) -> None:
    """A citation does not name the file."""
    map_citations(answered, lambda each: {**each, "file_id": None})


def untyped_citation(asked: Asked, answered: Answered) -> None:
    """A citation has no type."""
    map_citations(answered, lambda each: {k: v for k, v in each.items() if k != "type"})


def _recounted(asked: Asked, answered: Answered, size: Callable[[str], int]) -> None:
    """Places of characters as another measure counts them."""
    text = json.dumps(asked.json, ensure_ascii=False)

    def change(each: Citation) -> Citation:
        before = text[: max(0, text.find(each["cited_text"]))]
        by = size(before) - len(before)
        return moved(each, by, "start_char_index", "end_char_index")

    map_citations(answered, change)


MUTANTS: Final = mutants(
    "answer",
    {
        always_cited: "citations.absent*",
        quote_trimmed: "citations.*",
        quote_of_the_reply: "citations.*",
        characters_from_one: "citations.characters*",
        last_character_included: "citations.characters*",
        bytes_for_characters: "citations.characters*",
        units_for_characters: "citations.characters*",
        pages_from_zero: "citations.pages*",
        last_page_included: "citations.pages*",
        blocks_from_one: "citations.blocks*",
        documents_from_one: "citations.numbers*",
        first_document_cited: "citations.numbers*",
        results_from_one: "citations.numbers-of-results*",
        results_as_documents: "citations.search-results*",
        source_lost: "citations.search-results*",
        title_lost: "citations.numbers*",
        file_lost: "citations.files",
        untyped_citation: "citations.*",
    },
)
