"""Content blocks of a request, one class a `type`, and what may stand in which place.

A new block is a class here (or in `server_blocks.py`, for what only the hosted API's own
tools produce) and a member of `ContentBlock`. A string is short for one text block: it
has become one when a request is parsed. Knows shapes and bounds, nothing of rules that
look at more than one block (`rules/`) nor of what a block means to the model
(`prompt/`). Source: Messages API reference, request content blocks. Next: `request.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetPydanticSchema
from pydantic_core import CoreSchema, core_schema

from minimsg.limits import LIMITS
from minimsg.protocol.citations import Citation, CitationsConfig
from minimsg.protocol.server_blocks import ServerBlock
from minimsg.protocol.tools import Caller, CustomTool
from minimsg.protocol.wire import (
    CacheMark,
    Id,
    JsonObject,
    Name,
    ShortText,
    Text,
    Wire,
    or_null,
)


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


class ThinkingBlock(CacheMark):
    """What the model thought; comes back as it was sent."""

    type: Literal["thinking"]
    thinking: Text
    signature: Text


class RedactedThinkingBlock(CacheMark):
    """Thinking that only the server which wrote it can read."""

    type: Literal["redacted_thinking"]
    data: Text


class ToolUseBlock(CacheMark):
    """A call of a tool by the model."""

    type: Literal["tool_use"]
    id: Id
    name: Name
    input: JsonObject
    caller: Caller | None = None
    toolset_name: Name | None = None


class ToolReferenceBlock(CacheMark):
    """The name of a deferred tool, which from here on is known to the model."""

    type: Literal["tool_reference"]
    tool_name: Name


class BrowserStateBlock(CacheMark):
    """The tabs of the browser that a toolset steers."""

    type: Literal["browser_state"]
    tabs: list[JsonObject] = Many
    state_changes: list[JsonObject] | None = Many


ResultBlock = Annotated[
    TextBlock
    | ImageBlock
    | SearchResultBlock
    | DocumentBlock
    | ToolReferenceBlock
    | BrowserStateBlock,
    Field(discriminator="type"),
]


ResultBlocks = Annotated[list[ResultBlock], Many]


class ToolResultBlock(CacheMark):
    """What came of a call."""

    type: Literal["tool_result"]
    tool_use_id: Id
    content: Annotated[ResultBlocks, or_text(ResultBlocks), or_null(str | ResultBlocks)] = Field(
        default_factory=list
    )
    is_error: bool | None = None
    toolset_name: Name | None = None


class ContainerUploadBlock(CacheMark):
    """A file for the hosted API's own code execution."""

    type: Literal["container_upload"]
    file_id: Id


class NamedTool(Wire):
    """A tool of the request, by name."""

    type: Literal["tool_reference"]
    name: Name


class NamedMcpTool(Wire):
    """A tool of an MCP server, by name."""

    type: Literal["mcp_tool_reference"]
    name: Name
    server_name: Name


class NamedMcpToolset(Wire):
    """All tools of an MCP server."""

    type: Literal["mcp_toolset_reference"]
    server_name: Name


class DefinedTool(Wire):
    """A tool that the request did not have before."""

    type: Literal["tool_definition"]
    definition: CustomTool


class ToolAdditionBlock(CacheMark):
    """In a system turn: from here on the model has this tool."""

    type: Literal["tool_addition"]
    tool: Annotated[
        NamedTool | NamedMcpTool | NamedMcpToolset | DefinedTool, Field(discriminator="type")
    ]


class ToolRemovalBlock(CacheMark):
    """In a system turn: from here on the model has this tool no more."""

    type: Literal["tool_removal"]
    tool: Annotated[NamedTool | NamedMcpTool | NamedMcpToolset, Field(discriminator="type")]


ContentBlock = Annotated[
    TextBlock
    | ImageBlock
    | DocumentBlock
    | SearchResultBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ContainerUploadBlock
    | ToolAdditionBlock
    | ToolRemovalBlock
    | ServerBlock,
    Field(discriminator="type"),
]
"""What a turn may consist of, of whatever role; which role may have what is a rule."""

TurnBlocks = Annotated[list[ContentBlock], Many]
TurnContent = Annotated[TurnBlocks, or_text(TurnBlocks)]
SystemBlocks = Annotated[list[OnlyText], Many]
SystemText = Annotated[SystemBlocks, or_text(SystemBlocks), or_null(str | SystemBlocks)]
