"""The citations that a document or search result can give, one for each of its passages.

| block | passages | citation |
| --- | --- | --- |
| document of text | its sentences | `char_location`, exact to the character |
| PDF | the sentences of each page's text layer | `page_location` of that page |
| document of blocks | its text blocks | `content_block_location` |
| search result | its blocks | `search_result_location` |

What is blank is no passage. Knows blocks, not where the model reads them: `passages.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minimsg.citing.sentences import sentence_spans
from minimsg.prompt.pdfs import PdfPages
from minimsg.prompt.uploads import file_id_of
from minimsg.protocol.cited import (
    BlockCitation,
    CharCitation,
    DocumentCitation,
    PageCitation,
    ReplyCitation,
)
from minimsg.protocol.content import (
    ContentSource,
    DocumentBlock,
    SearchResultBlock,
    TextBlock,
    TextSource,
)
from minimsg.protocol.wire import Wire

Citable = DocumentBlock | SearchResultBlock


class Located(NamedTuple):
    """A citation, and where its text begins: in which text of the block, at which character."""

    part: int
    begin: int
    citation: ReplyCitation


def locations_of(block: Citable, index: int) -> Iterator[Located]:
    """The citations of `block`, which has this `index` among those of its kind."""
    if isinstance(block, SearchResultBlock):
        return _of_search_result(block, index)
    if isinstance(block.source, TextSource):
        return _of_text(block, block.source.data, index)
    if isinstance(block.source, PdfPages):
        return _of_pages(block, block.source.texts, index)
    assert isinstance(block.source, ContentSource)  # others are read or refused before
    return _of_blocks(block, block.source.content, index)


def _of_text(block: DocumentBlock, text: str, index: int) -> Iterator[Located]:
    for begin, end in sentence_spans(text):
        citation = CharCitation(
            type="char_location",
            **_of_document(block, index, text[begin:end]),
            start_char_index=begin,
            end_char_index=end,
        )
        yield Located(0, begin, citation)


def _of_pages(block: DocumentBlock, texts: Sequence[str], index: int) -> Iterator[Located]:
    for part, text in enumerate(texts):
        for begin, end in sentence_spans(text):
            citation = PageCitation(
                type="page_location",
                **_of_document(block, index, text[begin:end]),
                start_page_number=part + 1,
                end_page_number=part + 2,
            )
            yield Located(part, begin, citation)


def _of_blocks(block: DocumentBlock, blocks: Sequence[Wire], index: int) -> Iterator[Located]:
    for part, inner in enumerate(blocks):
        if isinstance(inner, TextBlock) and inner.text.strip():
            citation = BlockCitation(
                type="content_block_location",
                **_of_document(block, index, inner.text),
                start_block_index=part,
                end_block_index=part + 1,
            )
            yield Located(part, 0, citation)


def _of_document(block: DocumentBlock, index: int, cited: str) -> DocumentCitation:
    return {
        "cited_text": cited,
        "document_index": index,
        "document_title": block.title,
        "file_id": file_id_of(block),
    }


def _of_search_result(block: SearchResultBlock, index: int) -> Iterator[Located]:
    for part, inner in enumerate(block.content):
        if inner.text.strip():
            yield Located(
                part,
                0,
                {
                    "type": "search_result_location",
                    "cited_text": inner.text,
                    "search_result_index": index,
                    "source": block.source,
                    "title": block.title,
                    "start_block_index": part,
                    "end_block_index": part + 1,
                },
            )
