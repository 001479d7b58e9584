"""Tools that the hosted API runs itself, by type and version. Nothing here runs any of them.

They are typed so that a client is told which of them it must leave out, and so that they
can be left out for it (`--drop-server-tools`). Source: Messages API reference, tools.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.limits import LIMITS
from minimsg.protocol.citations import CitationsConfig
from minimsg.protocol.tool_fields import ToolFields
from minimsg.protocol.wire import (
    CacheControl,
    CacheMark,
    JsonObject,
    Name,
    Positive,
    ShortText,
    Text,
    Wire,
)

Inclusion = Literal["full", "excluded"]


class UserLocation(Wire):
    """Roughly where the client's user is."""

    type: Literal["approximate"]
    city: ShortText | None = None
    region: ShortText | None = None
    country: ShortText | None = None
    timezone: ShortText | None = None


Domains = Annotated[list[ShortText], Field(max_length=LIMITS.short_list)]


class _WebTool(ToolFields):
    max_uses: Positive | None = None
    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None


class WebSearchTool(_WebTool):
    """Search of the web."""

    type: Literal["web_search_20250305", "web_search_20260209"]
    name: Literal["web_search"]
    user_location: UserLocation | None = None


class NewWebSearchTool(_WebTool):
    """The same, which can leave what it found out of the reply."""

    type: Literal["web_search_20260318"]
    name: Literal["web_search"]
    user_location: UserLocation | None = None
    response_inclusion: Inclusion | None = None


class AllSources(Wire):
    """Addresses from everywhere, or from nowhere."""

    type: Literal["all", "none"]


class NamedSource(Wire):
    """A tool by name."""

    type: Literal["tool_reference"]
    name: Name


class SomeSources(Wire):
    """Addresses from these tools, or from all others."""

    type: Literal["only", "except"]
    tools: list[NamedSource] = Field(max_length=LIMITS.tools)


Sources = Annotated[AllSources | SomeSources, Field(discriminator="type")]


class UrlSources(Wire):
    """Where the addresses may come from."""

    client_tool_results: Sources | None = None
    server_tool_results: Sources | None = None
    user_input: AllSources | None = None


class _FetchTool(_WebTool):
    name: Literal["web_fetch"]
    citations: CitationsConfig | None = None
    max_content_tokens: Positive | None = None
    url_sources: UrlSources | None = None


class WebFetchTool(_FetchTool):
    """Fetching of pages."""

    type: Literal["web_fetch_20250910", "web_fetch_20260209"]


class CachedWebFetchTool(_FetchTool):
    """The same, which may give a page as it was before."""

    type: Literal["web_fetch_20260309"]
    use_cache: bool | None = None


class NewWebFetchTool(_FetchTool):
    """The same, which can leave what it found out of the reply."""

    type: Literal["web_fetch_20260318"]
    use_cache: bool | None = None
    response_inclusion: Inclusion | None = None


class CodeExecutionTool(ToolFields):
    """Running of code."""

    type: Literal[
        "code_execution_20250522",
        "code_execution_20250825",
        "code_execution_20260120",
        "code_execution_20260521",
    ]
    name: Literal["code_execution"]


class RegexToolSearch(ToolFields):
    """Search among deferred tools by a pattern."""

    type: Literal["tool_search_tool_regex", "tool_search_tool_regex_20251119"]
    name: Literal["tool_search_tool_regex"]


class TextToolSearch(ToolFields):
    """Search among deferred tools by words."""

    type: Literal["tool_search_tool_bm25", "tool_search_tool_bm25_20251119"]
    name: Literal["tool_search_tool_bm25"]


class AdvisorTool(ToolFields):
    """Another model that can be asked."""

    type: Literal["advisor_20260301"]
    name: Literal["advisor"]
    model: Name
    max_uses: Positive | None = None
    max_tokens: Positive | None = None
    caching: CacheControl | None = None


class McpToolConfig(Wire):
    """Whether a tool of an MCP server is there."""

    enabled: bool | None = None
    defer_loading: bool | None = None


class McpTool(Wire):
    """A tool of an MCP server."""

    name: Name
    description: Text | None = None
    input_schema: JsonObject


class McpToolset(CacheMark):
    """The tools of an MCP server."""

    type: Literal["mcp_toolset"]
    mcp_server_name: Name
    configs: dict[str, McpToolConfig] | None = Field(default=None, max_length=LIMITS.tools)
    default_config: McpToolConfig | None = None
    tools: list[McpTool] | None = Field(default=None, max_length=LIMITS.tools)


WebTool = WebSearchTool | NewWebSearchTool | WebFetchTool | CachedWebFetchTool | NewWebFetchTool
ServerTool = (
    WebTool | CodeExecutionTool | RegexToolSearch | TextToolSearch | AdvisorTool | McpToolset
)
