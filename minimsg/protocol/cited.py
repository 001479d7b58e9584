"""Where a text of a reply was taken from: the citations that replies carry.

Typed as the JSON that goes out; every key is always there. What comes back from clients
is in `citations.py`. Source: Messages API reference, citations.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class DocumentCitation(TypedDict):
    """What the citations of all documents say."""

    cited_text: str
    document_index: int  # among all documents of the request
    document_title: str | None
    file_id: str | None  # that the request named


class CharCitation(DocumentCitation):
    """Characters of a document of text, counted from 0; the end is not included."""

    type: Literal["char_location"]
    start_char_index: int
    end_char_index: int


class PageCitation(DocumentCitation):
    """Pages of a PDF, counted from 1; the end is not included."""

    type: Literal["page_location"]
    start_page_number: int
    end_page_number: int


class BlockCitation(DocumentCitation):
    """Blocks of a document of blocks, counted from 0; the end is not included."""

    type: Literal["content_block_location"]
    start_block_index: int
    end_block_index: int


class SearchCitation(TypedDict):
    """Blocks of a search result, counted from 0; the end is not included."""

    type: Literal["search_result_location"]
    cited_text: str
    search_result_index: int  # among all search results of the request
    source: str
    title: str | None
    start_block_index: int
    end_block_index: int


ReplyCitation = CharCitation | PageCitation | BlockCitation | SearchCitation
