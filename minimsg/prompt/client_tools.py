"""What the model is told of the client tools whose name and input the API has fixed.

A request only says `bash_20250124`; that type stands for a description and a schema that
a model has to be told in words. The words are ours; names of commands and parameters are
the API's, as its clients run them. Knows tools, nothing of requests or templates.
Source: Messages API reference, bash, text editor, memory and computer use tools.
"""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from minimsg.protocol.tools import (
    BashTool,
    ClientTool,
    ComputerTool,
    CustomTool,
    EditTool,
    MemoryTool,
    NewComputerTool,
    NewEditTool,
    TextEditorTool,
)
from minimsg.protocol.wire import JsonObject

_BASH: Final = (
    "Runs a command in a bash shell that stays open between calls, and returns what it "
    "writes. `restart` starts a new shell."
)
_EDITOR: Final = (
    "Views, creates and edits files. `view` shows a file with line numbers, or what a "
    "folder holds; `create` writes a whole file; `str_replace` replaces `old_str`, which "
    "must stand in the file exactly once, by `new_str`; `insert` puts text after the line "
    "`insert_line` (0: at the start)."
)
_UNDO: Final = " `undo_edit` takes back the last edit of a file."
_MEMORY: Final = (
    "Keeps notes in files below /memories that outlast this conversation. `view` shows a "
    "file with line numbers, or what a folder holds; `create` writes a whole file; "
    "`str_replace` replaces `old_str`, which must stand in the file exactly once, by "
    "`new_str`; `insert` puts `insert_text` after the line `insert_line` (0: at the start); "
    "`delete` removes a file or folder; `rename` moves `old_path` to `new_path`."
)
_ACTIONS: Final = (
    *("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click"),
    *("middle_click", "double_click", "screenshot", "cursor_position"),
)
_LATER_ACTIONS: Final = (
    *("left_mouse_down", "left_mouse_up", "triple_click", "scroll", "hold_key", "wait"),
)


def description_of(tool: ClientTool) -> str | None:
    """What the model is told `tool` does."""
    match tool:
        case CustomTool():
            return tool.description
        case BashTool():
            return _BASH
        case TextEditorTool():
            return _EDITOR + _UNDO
        case EditTool():
            return _EDITOR
        case NewEditTool():
            limit = tool.max_characters
            return _EDITOR + (f" `view` shows at most {limit} characters." if limit else "")
        case MemoryTool():
            return _MEMORY
        case ComputerTool() | NewComputerTool():
            return _computer(tool)


def input_schema_of(tool: ClientTool) -> JsonObject:
    """The JSON Schema of the tool's input; a custom tool's own, untouched."""
    match tool:
        case CustomTool():
            return tool.input_schema
        case BashTool():
            command = _text("The command to run; needed unless `restart` is true.")
            return _schema([], command=command, restart={"type": "boolean"})
        case TextEditorTool():
            both = "For str_replace: the text instead of it; for insert: the text."
            return _editor_schema("undo_edit", new_str=both)
        case EditTool() | NewEditTool():
            instead = "For str_replace: the text instead of it."
            return _editor_schema(new_str=instead, insert_text=_text("For insert: the text."))
        case MemoryTool():
            return _memory_schema()
        case ComputerTool() | NewComputerTool():
            return _computer_schema(tool)


def _computer(tool: ComputerTool | NewComputerTool) -> str:
    display = f" of display {tool.display_number}" if tool.display_number is not None else ""
    return (
        f"Steers mouse and keyboard of a screen{display} that is {tool.display_width_px} pixels "
        f"wide and {tool.display_height_px} high, and shows it as a `screenshot`. A `coordinate` "
        "is [x, y] in pixels from the upper left corner."
    )


def _editor_schema(*commands: str, new_str: str, **more: JsonValue) -> JsonObject:
    return _schema(
        ["command", "path"],
        command=_one_of("view", "create", "str_replace", "insert", *commands),
        path=_text("Absolute path of a file or folder."),
        view_range=_numbers("For view: first and last line; -1 is the end."),
        file_text=_text("For create: what the file holds."),
        old_str=_text("For str_replace: the text to replace."),
        new_str=_text(new_str),
        insert_line=_number("For insert: the line after which the text goes."),
        **more,
    )


def _memory_schema() -> JsonObject:
    return _schema(
        ["command"],
        command=_one_of("view", "create", "str_replace", "insert", "delete", "rename"),
        path=_text("Path of a file or folder, from /memories on; not for rename."),
        view_range=_numbers("For view: first and last line; -1 is the end."),
        file_text=_text("For create: what the file holds."),
        old_str=_text("For str_replace: the text to replace."),
        new_str=_text("For str_replace: the text instead of it."),
        insert_line=_number("For insert: the line after which the text goes."),
        insert_text=_text("For insert: the text."),
        old_path=_text("For rename: the path as it is."),
        new_path=_text("For rename: the path as it will be."),
    )


def _computer_schema(tool: ComputerTool | NewComputerTool) -> JsonObject:
    is_first = tool.type == "computer_20241022"
    later = {} if is_first else _later_parameters()
    zoom = {"region": _numbers("For zoom: [left, top, right, bottom].")}
    actions = [*_ACTIONS, *(() if is_first else _LATER_ACTIONS)]
    return _schema(
        ["action"],
        action=_one_of(*actions, *(["zoom"] if _zooms(tool) else [])),
        coordinate=_numbers("[x, y] for clicks, moves and scrolling."),
        text=_text("For type: the text; for key: the keys, such as ctrl+s."),
        **later,
        **(zoom if _zooms(tool) else {}),
    )


def _zooms(tool: ComputerTool | NewComputerTool) -> bool:
    return isinstance(tool, NewComputerTool) and bool(tool.enable_zoom)


def _later_parameters() -> dict[str, JsonValue]:
    return {
        "start_coordinate": _numbers("For left_click_drag: [x, y] where it starts."),
        "scroll_direction": _one_of("up", "down", "left", "right"),
        "scroll_amount": _number("For scroll: how many clicks of the wheel."),
        "duration": _number("For hold_key and wait: seconds."),
    }


def _schema(required: list[JsonValue], **properties: JsonValue) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required}


def _text(description: str) -> dict[str, JsonValue]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, JsonValue]:
    return {"type": "integer", "description": description}


def _numbers(description: str) -> dict[str, JsonValue]:
    return {"type": "array", "items": {"type": "integer"}, "description": description}


def _one_of(*values: str) -> dict[str, JsonValue]:
    return {"type": "string", "enum": list(values)}
