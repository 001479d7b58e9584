"""Blocks that hold something to read: text, pictures, documents, search results.

They stand in turns, in results of tools, and inside each other. A string is short for one
text block (`or_text`). Knows shapes and bounds; which block may stand in which turn is in
`rules/blocks.py`. Source: Messages API reference, request content blocks. Next: `content.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetPydanticSchema
from pydantic_core import CoreSchema, core_schema

from minimsg.limits import LIMITS
from minimsg.protocol.citations import Citation, CitationsConfig
from minimsg.protocol.wire import CacheMark, Id, ShortText, Text, Wire


class TextBlock(CacheMark):
    """Text that a turn, the system prompt or a tool's result consists of."""

    type: Literal["text"]
    text: Text
    citations: list[Citation] | None = Field(default=None, max_length=LIMITS.blocks_per_message)


class Base64ImageSource(Wire):
    """The bytes of a picture."""

    type: Literal["base64"]
    media_type: Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
    data: Text


class UrlSource(Wire):
    """Where a picture or a document lies."""

    type: Literal["url"]
    url: Text


class FileSource(Wire):
    """A file that was uploaded before."""

    type: Literal["file"]
    file_id: Id


class ImageTransformations(Wire):
    """What to do with a picture that is larger than the model can see."""

    oversized_image: Literal["downsize", "error"] | None = None


class ImageBlock(CacheMark):
    """A picture."""

    type: Literal["image"]
    source: Annotated[Base64ImageSource | UrlSource | FileSource, Field(discriminator="type")]
    transformations: ImageTransformations | None = None


class Base64PdfSource(Wire):
    """The bytes of a PDF."""

    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: Text


class TextSource(Wire):
    """A document as text."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: Text


def _by_type(block: type[TextBlock], handler: GetCoreSchemaHandler) -> CoreSchema:
    """A union with one member, told by `type`: pydantic's own `discriminator` wants two."""
    return core_schema.tagged_union_schema({"text": handler(block)}, discriminator="type")


OnlyText = Annotated[TextBlock, GetPydanticSchema(_by_type)]


def or_text(kind: Any) -> BeforeValidator:
    """For a list of blocks, `kind`: a string is short for one text block."""
    return BeforeValidator(_text_as_block, json_schema_input_type=str | kind)


def _text_as_block(value: object) -> object:
    """An empty string is no block."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value


Many = Field(max_length=LIMITS.blocks_per_message)


SourceBlocks = Annotated[list[Annotated[TextBlock | ImageBlock, Field(discriminator="type")]], Many]


class ContentSource(Wire):
    """A document as blocks; each can be cited."""

    type: Literal["content"]
    content: Annotated[SourceBlocks, or_text(SourceBlocks)]


class DocumentBlock(CacheMark):
    """A document, with what a reader should know of it."""

    type: Literal["document"]
    source: Annotated[
        Base64PdfSource | TextSource | ContentSource | UrlSource | FileSource,
        Field(discriminator="type"),
    ]
    title: Annotated[str, Field(min_length=1, max_length=LIMITS.title_chars)] | None = None
    context: Annotated[str, Field(min_length=1, max_length=LIMITS.body_bytes)] | None = None
    citations: CitationsConfig | None = None


class SearchResultBlock(CacheMark):
    """Something that the client's own search has found."""

    type: Literal["search_result"]
    source: Text
    title: ShortText
    content: Annotated[list[OnlyText], Many]
    citations: CitationsConfig | None = None
