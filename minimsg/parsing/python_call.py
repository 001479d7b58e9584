"""A call of one of Llama 3's built-in tools: `brave_search.call(query="weather", count=3)`.

Written after the tag only (`llama_json.py`). Values are Python's and read as JSON
(`json_text.py` knows both ways to write them), so that the input streams as any other.
Knows one call; what follows its closing bracket is text. No grammar has calls of this form, so
that of a tool whose calls are held to its schema it is none.
Source: Llama 3.1 prompt format, "Built-in Python based tool calling".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from minimsg.limits import LIMITS
from minimsg.parsing.calls import Outcome, Tools
from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.segments import Segment, ToolCallEnd, ToolCallInput, ToolCallStart
from minimsg.parsing.tool_input import ToolInput

CALL: Final = ".call("
IN_NAMES: Final = "_-" + CALL  # beside letters and digits; never the beginning of a tag


class PythonCall:
    """The call, from the first character of the tool's name on."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._segments: list[Segment] = []
        self._step: Callable[[str], Outcome] = self._in_name
        self._read = ""  # of the tool's name, or of a parameter's
        self._gap = ""  # after a comma
        self._input: ToolInput | None = None  # of a call that is open

    def push(self, character: str) -> Outcome:
        return self._step(character)

    def take(self) -> list[Segment]:
        if self._input is not None:
            self._segments += map(ToolCallInput, self._input.take())
        taken, self._segments = self._segments, []
        return taken

    def flush(self, *, is_cut: bool) -> list[Segment]:
        if self._input is not None and is_cut:
            return [*self.take(), *map(ToolCallInput, self._input.cut())]
        self._end()
        return self.take()

    def _in_name(self, character: str) -> Outcome:
        self._read += character
        name = self._read.removesuffix(CALL)
        if name == self._read:
            is_name = character.isalnum() or character in IN_NAMES
            can_go_on = is_name and len(name) <= LIMITS.name_chars + len(CALL)
            return Outcome.MAYBE if can_go_on else Outcome.DONE
        if name not in self._tools or self._tools[name].is_held:
            return Outcome.DONE
        self._segments.append(ToolCallStart(name))
        self._input = ToolInput(is_eager=self._tools[name].is_eager)
        self._input.push("{")
        self._read, self._step = "", self._in_key
        return Outcome.CALL

    def _in_key(self, character: str) -> Outcome:
        assert self._input is not None
        if character == ")" and not self._read:
            return self._close()
        if character == "=" and self._read:
            for each in f"{self._gap}{json.dumps(self._read)}: ":
                self._input.push(each)
            self._read, self._step = "", self._in_value
        elif character.isidentifier() or (self._read and character.isdecimal()):
            self._read += character
        elif character not in WHITE_SPACE:
            return self._break()
        return Outcome.CALL

    def _in_value(self, character: str) -> Outcome:
        assert self._input is not None
        if character in ",)" and self._input.can_end_member:
            if character == ")":
                return self._close()
            self._gap, self._step = " ", self._in_key
        return Outcome.CALL if self._input.push(character) else self._break()

    def _close(self) -> Outcome:
        assert self._input is not None
        if not self._input.push("}"):
            return self._break()
        self._end()
        self._step = self._after
        return Outcome.CALL

    def _after(self, character: str) -> Outcome:
        return Outcome.DONE

    def _break(self) -> Outcome:
        self._end()
        return Outcome.BROKEN

    def _end(self) -> None:
        if self._input is not None:
            self._segments += [*map(ToolCallInput, self._input.close()), ToolCallEnd()]
            self._input = None
