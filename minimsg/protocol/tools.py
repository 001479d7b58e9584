"""The tools of a request, one class a kind, and `tool_choice`.

Three kinds: a custom tool, which brings its own schema; a client tool whose name and
schema the API fixed, such as bash; a server tool, which the hosted API runs itself and
nothing here does (`server_tools.py`). Knows shapes and bounds; rules over several tools are in
`rules/tools.py`, what the model reads of a tool is in `prompt/`.
Source: Messages API reference, tools.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from minimsg.limits import LIMITS
from minimsg.protocol.server_tools import ServerTool
from minimsg.protocol.tool_fields import ToolFields
from minimsg.protocol.wire import (
    CacheMark,
    Count,
    JsonObject,
    Name,
    Positive,
    Text,
    Wire,
    or_null,
)

ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


class _ClientTool(ToolFields):
    input_examples: list[JsonObject] | None = Field(default=None, max_length=LIMITS.short_list)


class CustomTool(_ClientTool):
    """A tool of the client's own. No `type`, or null, means this kind."""

    type: Literal["custom"] = "custom"
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

    type: Literal["text_editor_20250429"]
    name: Literal["str_replace_based_edit_tool"]


class NewEditTool(_ClientTool):
    """The same, which can show a part of a file."""

    type: Literal["text_editor_20250728"]
    name: Literal["str_replace_based_edit_tool"]
    max_characters: Positive | None = None


class MemoryTool(_ClientTool):
    """A folder of notes that the client keeps."""

    type: Literal["memory_20250818"]
    name: Literal["memory"]


class _Screen(_ClientTool):
    name: Literal["computer"]
    display_width_px: Positive
    display_height_px: Positive
    display_number: Count | None = None


class ComputerTool(_Screen):
    """A screen, mouse and keyboard that the client steers."""

    type: Literal["computer_20241022", "computer_20250124"]


class NewComputerTool(_Screen):
    """The same, with a magnifying glass."""

    type: Literal["computer_20251124"]
    enable_zoom: bool | None = None


class Toolset(CacheMark):
    """A set of tools that only the hosted API knows."""

    type: Literal["computer_toolset_20260801", "browser_toolset_20260801"]
    configs: JsonObject | None = None


ClientTool = (
    CustomTool
    | BashTool
    | TextEditorTool
    | EditTool
    | NewEditTool
    | MemoryTool
    | ComputerTool
    | NewComputerTool
)


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
DefinableTool = Annotated[ClientTool, Field(discriminator="type"), BeforeValidator(_custom_is_said)]
"""What a conversation can bring along: nothing that only the hosted API runs."""

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
