"""Blocks that the hosted API's own tools leave in assistant turns, and those of its betas.

minimsg runs no such tool, but a conversation that began elsewhere may bring them along.
Encrypted parts are opaque. Source: Messages API reference, request content blocks.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from minimsg.limits import LIMITS
from minimsg.protocol.code_blocks import BashResultBlock, CodeResultBlock, EditorResultBlock
from minimsg.protocol.media import DocumentBlock, Many, OnlyText, or_text
from minimsg.protocol.server_tools import McpTool
from minimsg.protocol.tool_changes import ToolAdditionBlock, ToolReferenceBlock, ToolRemovalBlock
from minimsg.protocol.tool_fields import Caller
from minimsg.protocol.wire import CacheMark, Id, JsonObject, Name, ShortText, Text, Wire, or_null

TextBlocks = Annotated[list[OnlyText], Many]
ToolChange = Annotated[ToolAdditionBlock | ToolRemovalBlock, Field(discriminator="type")]
ServerToolName = Literal[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
]


class ServerToolUseBlock(CacheMark):
    """A call that the hosted API answered itself."""

    type: Literal["server_tool_use"]
    id: Annotated[str, Field(max_length=LIMITS.id_chars, pattern=r"^srvtoolu_[a-zA-Z0-9_]+$")]
    name: ServerToolName
    input: JsonObject
    caller: Caller | None = None


class WebSearchResult(Wire):
    """A page that was found."""

    type: Literal["web_search_result"]
    url: Text
    title: ShortText
    encrypted_content: Text
    page_age: ShortText | None = None


class WebSearchError(Wire):
    """Why nothing was found."""

    type: Literal["web_search_tool_result_error"]
    error_code: ShortText


class WebSearchResultBlock(CacheMark):
    """What a web search gave."""

    type: Literal["web_search_tool_result"]
    tool_use_id: Id
    content: Annotated[list[WebSearchResult], Many] | WebSearchError
    caller: Caller | None = None


class WebFetchResult(Wire):
    """A page that was read."""

    type: Literal["web_fetch_result"]
    url: Text
    content: DocumentBlock
    retrieved_at: ShortText | None = None


class WebFetchError(Wire):
    """Why a page was not read."""

    type: Literal["web_fetch_tool_result_error"]
    error_code: ShortText


class WebFetchResultBlock(CacheMark):
    """What a fetch gave."""

    type: Literal["web_fetch_tool_result"]
    tool_use_id: Id
    content: Annotated[WebFetchResult | WebFetchError, Field(discriminator="type")]
    caller: Caller | None = None


class ToolSearchFound(Wire):
    """The deferred tools that were found."""

    type: Literal["tool_search_tool_search_result"]
    tool_references: Annotated[list[ToolReferenceBlock], Many]


class ToolSearchError(Wire):
    """Why none was found."""

    type: Literal["tool_search_tool_result_error"]
    error_code: ShortText
    error_message: Text | None = None


class ToolSearchResultBlock(CacheMark):
    """What a search among deferred tools gave."""

    type: Literal["tool_search_tool_result"]
    tool_use_id: Id
    content: Annotated[ToolSearchFound | ToolSearchError, Field(discriminator="type")]


class AdvisorResult(Wire):
    """What the other model said."""

    type: Literal["advisor_result"]
    text: Text
    stop_reason: ShortText | None = None


class EncryptedAdvisorResult(Wire):
    """What the other model said, for the hosted API only."""

    type: Literal["advisor_redacted_result"]
    encrypted_content: Text
    stop_reason: ShortText | None = None


class AdvisorError(Wire):
    """Why the other model said nothing."""

    type: Literal["advisor_tool_result_error"]
    error_code: ShortText


class AdvisorResultBlock(CacheMark):
    """What asking another model gave."""

    type: Literal["advisor_tool_result"]
    tool_use_id: Id
    content: Annotated[
        AdvisorResult | EncryptedAdvisorResult | AdvisorError, Field(discriminator="type")
    ]


class McpToolUseBlock(CacheMark):
    """A call of a tool of an MCP server that the hosted API made itself."""

    type: Literal["mcp_tool_use"]
    id: Id
    name: Name
    server_name: Name
    input: JsonObject


class McpToolResultBlock(CacheMark):
    """What came of it."""

    type: Literal["mcp_tool_result"]
    tool_use_id: Id
    is_error: bool | None = None
    content: Annotated[TextBlocks, or_text(TextBlocks), or_null(str | TextBlocks)] = Field(
        default_factory=list
    )


class McpToolListingBlock(CacheMark):
    """The tools that an MCP server had."""

    type: Literal["mcp_tool_listing"]
    mcp_server_name: Name
    tools: list[McpTool] = Field(max_length=LIMITS.tools)


class CompactionBlock(CacheMark):
    """A summary; everything before it is not read."""

    type: Literal["compaction"]
    content: Text | None = None
    encrypted_content: Text | None = None
    signature: Text | None = None
    tool_changes: Annotated[list[ToolChange], Many] | None = None


class FallbackModel(Wire):
    """A model by name."""

    model: Name


class FallbackBlock(CacheMark):
    """Where another model took over."""

    type: Literal["fallback"]
    from_: FallbackModel = Field(alias="from")
    to: FallbackModel
    trigger: JsonValue = None


ServerUse = ServerToolUseBlock | McpToolUseBlock
ServerResult = (
    WebSearchResultBlock
    | WebFetchResultBlock
    | CodeResultBlock
    | BashResultBlock
    | EditorResultBlock
    | ToolSearchResultBlock
    | AdvisorResultBlock
    | McpToolResultBlock
)
ServerBlock = ServerUse | ServerResult | McpToolListingBlock | CompactionBlock | FallbackBlock
