"""The tools of a request, one class a kind, and `tool_choice`.

Three kinds: a custom tool, which brings its own schema; a client tool whose name and
schema the API fixed, such as bash; a server tool, which the hosted API runs itself and
nothing here does. Knows shapes and bounds; rules over several tools are in
`rules/tools.py`, what the model reads of a tool is in `prompt/`.
Source: Messages API reference, tools.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from minimsg.limits import LIMITS
from minimsg.protocol.wire import (
    CacheMark,
    Count,
    JsonObject,
    Name,
    ShortText,
    Text,
    Wire,
    or_null,
)

ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
Positive = Annotated[int, Field(ge=1, le=LIMITS.count)]


class DirectCaller(Wire):
    """The model itself made the call."""

    type: Literal["direct"]


class CodeCaller(Wire):
    """Code that the model ran made the call."""

    type: Literal["code_execution_20250825", "code_execution_20260120"]
    tool_id: Name


Caller = Annotated[DirectCaller | CodeCaller, Field(discriminator="type")]
AllowedCaller = Literal[
    "direct",
    "code_execution_20250825",
    "code_execution_20260120",
    "code_execution_20260521",
]


class _Tool(CacheMark):
    strict: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: list[AllowedCaller] | None = Field(default=None, max_length=LIMITS.short_list)


class _ClientTool(_Tool):
    input_examples: list[JsonObject] | None = Field(default=None, max_length=LIMITS.short_list)


class CustomTool(_ClientTool):
    """A tool of the client's own. No `type`, or null, means this kind."""

    type: Literal["custom", None] = "custom"
    name: ToolName
    description: Text | None = None
    input_schema: JsonObject
    eager_input_streaming: bool | None = None


class BashTool(_ClientTool):
    """A shell that the client runs."""

    type: Literal["bash_20250124", "bash_20241022"]
    name: Literal["bash"]


class TextEditorTool(_ClientTool):
    """An editor of files that the client runs."""

    type: Literal["text_editor_20250124", "text_editor_20241022"]
    name: Literal["str_replace_editor"]


class EditTool(_ClientTool):
    """A newer editor of files that the client runs."""

    type: Literal["text_editor_20250429", "text_editor_20250728"]
    name: Literal["str_replace_based_edit_tool"]
    max_characters: Positive | None = None


class MemoryTool(_ClientTool):
    """A folder of notes that the client keeps."""

    type: Literal["memory_20250818"]
    name: Literal["memory"]


class ComputerTool(_ClientTool):
    """A screen, mouse and keyboard that the client steers."""

    type: Literal["computer_20241022", "computer_20250124", "computer_20251124"]
    name: Literal["computer"]
    display_width_px: Positive
    display_height_px: Positive
    display_number: Count | None = None
    enable_zoom: bool | None = None


class Toolset(CacheMark):
    """A set of tools that only the hosted API knows."""

    type: Literal["computer_toolset_20260801", "browser_toolset_20260801"]
    configs: JsonObject | list[JsonObject] | None = None


class UserLocation(Wire):
    """Roughly where the client's user is."""

    type: Literal["approximate"]
    city: ShortText | None = None
    region: ShortText | None = None
    country: ShortText | None = None
    timezone: ShortText | None = None


Domains = Annotated[list[ShortText], Field(max_length=LIMITS.short_list)]


class _WebTool(_Tool):
    max_uses: Positive | None = None
    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None
    response_inclusion: Literal["full", "excluded"] | None = None


class WebSearchTool(_WebTool):
    """Search that the hosted API runs."""

    type: Literal["web_search_20250305", "web_search_20260209", "web_search_20260318"]
    name: Literal["web_search"]
    user_location: UserLocation | None = None


class WebFetchTool(_WebTool):
    """Fetching of pages that the hosted API runs."""

    type: Literal[
        "web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309", "web_fetch_20260318"
    ]
    name: Literal["web_fetch"]
    citations: JsonObject | None = None
    max_content_tokens: Positive | None = None
    use_cache: bool | None = None
    url_sources: JsonObject | list[ShortText] | None = None


class CodeExecutionTool(_Tool):
    """Code that the hosted API runs."""

    type: Literal[
        "code_execution_20250522",
        "code_execution_20250825",
        "code_execution_20260120",
        "code_execution_20260521",
    ]
    name: Literal["code_execution"]


class ToolSearchTool(_Tool):
    """Search among deferred tools that the hosted API runs."""

    type: Literal[
        "tool_search_tool_regex",
        "tool_search_tool_regex_20251119",
        "tool_search_tool_bm25",
        "tool_search_tool_bm25_20251119",
    ]
    name: Literal["tool_search_tool_regex", "tool_search_tool_bm25"]


class AdvisorTool(_Tool):
    """Another model that the hosted API asks."""

    type: Literal["advisor_20260301"]
    name: Literal["advisor"]
    model: Name | None = None
    max_uses: Positive | None = None
    caching: JsonObject | None = None


class McpToolset(CacheMark):
    """The tools of an MCP server that the hosted API talks to."""

    type: Literal["mcp_toolset"]
    mcp_server_name: Name
    configs: JsonObject | None = None
    default_config: JsonObject | None = None


ServerTool = (
    WebSearchTool | WebFetchTool | CodeExecutionTool | ToolSearchTool | AdvisorTool | McpToolset
)
ClientTool = CustomTool | BashTool | TextEditorTool | EditTool | MemoryTool | ComputerTool


def _custom_is_said(value: object) -> object:
    """A tool without a type is a custom one."""
    if isinstance(value, dict) and value.get("type") is None:
        return {**value, "type": "custom"}
    return value


Tool = Annotated[
    ClientTool | Toolset | ServerTool,
    Field(discriminator="type"),
    BeforeValidator(_custom_is_said),
]
ToolList = Annotated[list[Tool], Field(max_length=LIMITS.tools)]
Tools = Annotated[ToolList, or_null(ToolList)]


class AutoChoice(Wire):
    """The model decides."""

    type: Literal["auto"]
    disable_parallel_tool_use: bool | None = None


class AnyChoice(Wire):
    """The model must call a tool."""

    type: Literal["any"]
    disable_parallel_tool_use: bool | None = None


class NamedChoice(Wire):
    """The model must call this tool."""

    type: Literal["tool"]
    name: Name
    disable_parallel_tool_use: bool | None = None


class NoneChoice(Wire):
    """The model must call no tool."""

    type: Literal["none"]


ToolChoice = Annotated[
    AutoChoice | AnyChoice | NamedChoice | NoneChoice, Field(discriminator="type")
]
