"""Calls of Qwen3-Coder and Qwen3.5: tags for the function and for each parameter.

    <tool_call>
    <function=now>
    <parameter=zone>
    UTC
    </parameter>
    </function>
    </tool_call>

Values are text between two line breaks; the tool's schema says what they are
(`xml_value.py`). These models forget the outer tag, so that `<function=` begins a call
as well, and they write JSON between the tags, as their elders do (`json_calls.py`). Where
a call breaks after its name, it is closed with the parameters that are whole; the rest, up
to the next tag, is dropped.
Source: the chat templates published with these models.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from minimsg.limits import LIMITS
from minimsg.parsing import hermes
from minimsg.parsing.calls import CallableTool, CallReader, Format, Outcome, Tools
from minimsg.parsing.either import EitherCall
from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.json_calls import JsonCalls
from minimsg.parsing.schema_kinds import parameter_kinds
from minimsg.parsing.segments import Segment, ToolCallEnd, ToolCallInput, ToolCallStart
from minimsg.parsing.xml_value import END_OF_FUNCTION, END_OF_VALUE, PARAMETER, Value

FUNCTION: Final = "<function="
AROUND_NAME: Final = WHITE_SPACE + "\"'"
ENDS: Final = (END_OF_FUNCTION, hermes.CLOSING)


class XmlCall:
    """The call after `<tool_call>`, or after `<function=`."""

    def __init__(self, tools: Tools, *, has_function: bool) -> None:
        self._is_open = False
        self._tools = tools
        self._tool = CallableTool()
        self._segments: list[Segment] = []
        self._step: Callable[[str], Outcome] = self._in_name if has_function else self._at_function
        self._read = ""  # of a tag or a name that has begun
        self._value: Value | None = None
        self._is_begun = False  # some of the input is out
        self._missing: set[str] = set()  # parameters that the tool has and were not given

    def push(self, character: str) -> Outcome:
        return self._step(character)

    def take(self) -> list[Segment]:
        if self._value is not None and self._tool.is_eager:
            self._say(self._value.stream())
        taken, self._segments = self._segments, []
        return taken

    def flush(self, *, is_cut: bool) -> list[Segment]:
        if self._is_open and is_cut and self._value is not None:
            self._say(self._value.stream())
        if self._is_open and not is_cut:
            self._end()
        return self.take()

    def _at_function(self, character: str) -> Outcome:
        if not self._reads_tag(character, (FUNCTION,)):
            return Outcome.DONE
        if self._read == FUNCTION:
            self._read, self._step = "", self._in_name
        return Outcome.MAYBE

    def _in_name(self, character: str) -> Outcome:
        if character != ">":
            return Outcome.MAYBE if self._reads_name(character) else Outcome.DONE
        name = self._read.strip(AROUND_NAME)
        if name not in self._tools:
            return Outcome.DONE
        self._tool = self._tools[name]
        properties = self._tool.input_schema.get("properties")
        self._missing = set(properties) if isinstance(properties, dict) else set()
        self._segments.append(ToolCallStart(name))
        self._is_open = True
        self._read, self._step = "", self._between
        return Outcome.CALL

    def _between(self, character: str) -> Outcome:
        """Between the parameters."""
        if not self._reads_tag(character, (PARAMETER, *ENDS)):
            return self._break()
        if self._read == PARAMETER:
            self._read, self._step = "", self._in_key
        elif self._read in ENDS:
            self._end()
            self._step = self._after
        return Outcome.CALL

    def _in_key(self, character: str) -> Outcome:
        if character != ">":
            return Outcome.CALL if self._reads_name(character) else self._break()
        self._start_value(self._read.strip(AROUND_NAME))
        return Outcome.CALL

    def _start_value(self, name: str) -> None:
        self._missing.discard(name)
        head = f"{', ' if self._is_begun else '{'}{json.dumps(name, ensure_ascii=False)}: "
        others = None if self._tool.is_held else self._missing
        self._value = Value(head, parameter_kinds(self._tool.input_schema, name), others)
        self._read, self._step = "", self._in_value

    def _in_value(self, character: str) -> Outcome:
        assert self._value is not None
        self._value.push(character)
        if end := self._value.end:
            self._say(self._value.finish())
            self._value = None
            self._at_end_of_value(end)
        return Outcome.CALL

    def _at_end_of_value(self, end: str) -> None:
        """Go on behind the tag that ended a value."""
        if end == END_OF_VALUE:
            self._step = self._between
        elif end.startswith(PARAMETER):
            self._start_value(end[len(PARAMETER) : -1])
        else:
            self._end()
            self._step = self._after

    def _after(self, character: str) -> Outcome:
        return Outcome.DONE

    def _reads_tag(self, character: str, tags: tuple[str, ...]) -> bool:
        """Whether `character` goes on with one of `tags`, or with the white space before it."""
        if not self._read and character in WHITE_SPACE:
            return True
        self._read += character
        return any(tag.startswith(self._read) for tag in tags)

    def _reads_name(self, character: str) -> bool:
        self._read += character
        return character not in "<\n" and len(self._read) <= LIMITS.name_chars

    def _break(self) -> Outcome:
        self._end()
        return Outcome.BROKEN

    def _say(self, fragment: str) -> None:
        if fragment:
            self._segments.append(ToolCallInput(fragment))
            self._is_begun = True

    def _end(self) -> None:
        if self._value is not None:
            self._say(self._value.closing())
        self._say("}" if self._is_begun else "{}")
        self._segments.append(ToolCallEnd())
        self._is_open, self._value = False, None


def read_call(opening: str, tools: Tools) -> CallReader:
    """The reader of what follows a tag."""
    if opening == FUNCTION:
        return XmlCall(tools, has_function=True)
    return EitherCall(
        lambda first: (
            XmlCall(tools, has_function=False)
            if first == FUNCTION[0]
            else JsonCalls(_not_held(tools), is_tagged=True)
        )
    )


def _not_held(tools: Tools) -> Tools:
    """Those whose calls may be JSON as well: grammars have them in tags only."""
    return {name: tool for name, tool in tools.items() if not tool.is_held}


QWEN_XML: Final = Format(
    openings=(hermes.OPENING, FUNCTION), closings=(hermes.CLOSING,), reader=read_call
)
