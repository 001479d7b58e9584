"""Blocks that the hosted API's own tools leave in assistant turns, and those of its betas.

minimsg runs no such tool, but a conversation that began elsewhere may bring them along.
Encrypted parts are opaque. Source: Messages API reference, request content blocks.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.limits import LIMITS
from minimsg.protocol.tools import Caller
from minimsg.protocol.wire import CacheMark, Id, JsonObject, Name, ShortText, Text, Wire

Many = Field(max_length=LIMITS.blocks_per_message)

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
    """A page that was read; `content` is a document block."""

    type: Literal["web_fetch_result"]
    url: Text
    content: JsonObject
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


class OtherResultBlock(CacheMark):
    """What a server tool gave whose results only the hosted API can read."""

    type: Literal[
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
    ]
    tool_use_id: Id
    content: JsonObject
    caller: Caller | None = None


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
    content: Text | Annotated[list[JsonObject], Many] | None = None


class McpToolListingBlock(CacheMark):
    """The tools that an MCP server had."""

    type: Literal["mcp_tool_listing"]
    mcp_server_name: Name
    tools: list[JsonObject] = Field(max_length=LIMITS.tools)


class CompactionBlock(CacheMark):
    """A summary; everything before it is not read."""

    type: Literal["compaction"]
    content: Text | None = None
    encrypted_content: Text | None = None
    signature: Text | None = None
    tool_changes: JsonObject | Annotated[list[JsonObject], Many] | None = None


class FallbackBlock(CacheMark):
    """Where another model took over."""

    type: Literal["fallback"]
    from_: JsonObject = Field(alias="from")
    to: JsonObject
    trigger: JsonObject | ShortText | None = None


ServerBlock = (
    ServerToolUseBlock
    | WebSearchResultBlock
    | WebFetchResultBlock
    | OtherResultBlock
    | McpToolUseBlock
    | McpToolResultBlock
    | McpToolListingBlock
    | CompactionBlock
    | FallbackBlock
)
