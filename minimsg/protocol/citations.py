"""Citations on text that an assistant turn brings back: where the text was taken from.

They are for the client; the model does not read them. Source: Messages API reference,
citations.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.protocol.wire import Count, ShortText, Text, Wire


class CitationsConfig(Wire):
    """Whether a document or a search result may be cited."""

    enabled: bool | None = None


class _InDocument(Wire):
    cited_text: Text
    document_index: Count
    document_title: ShortText | None = None
    file_id: ShortText | None = None  # a field of replies, which clients send back


class CharLocation(_InDocument):
    """Characters of a document of text; the end is not included."""

    type: Literal["char_location"]
    start_char_index: Count
    end_char_index: Count


class PageLocation(_InDocument):
    """Pages of a PDF, counted from 1; the end is not included."""

    type: Literal["page_location"]
    start_page_number: Count
    end_page_number: Count


class ContentBlockLocation(_InDocument):
    """Blocks of a document of blocks; the end is not included."""

    type: Literal["content_block_location"]
    start_block_index: Count
    end_block_index: Count


class SearchResultLocation(Wire):
    """Blocks of a search result; the end is not included."""

    type: Literal["search_result_location"]
    cited_text: Text
    search_result_index: Count
    source: Text
    title: ShortText | None = None
    start_block_index: Count
    end_block_index: Count


class WebSearchResultLocation(Wire):
    """A page that the hosted API's own search found."""

    type: Literal["web_search_result_location"]
    cited_text: Text
    url: Text
    title: ShortText | None = None
    encrypted_index: Text


Citation = Annotated[
    CharLocation
    | PageLocation
    | ContentBlockLocation
    | SearchResultLocation
    | WebSearchResultLocation,
    Field(discriminator="type"),
]
