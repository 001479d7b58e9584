"""Calls of Qwen3-Coder and Qwen3.5: tags for the function and for each parameter.

    <tool_call>
    <function=now>
    <parameter=zone>
    UTC
    </parameter>
    </function>
    </tool_call>

Values are text between two line breaks; the tool's schema says what they are
(`schema_kinds.py`). These models forget the outer tag, so that `<function=` begins a call
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
from minimsg.parsing.hold import WHITE_SPACE, held_length
from minimsg.parsing.json_calls import JsonCalls
from minimsg.parsing.schema_kinds import STRING, Kinds, as_json, parameter_kinds
from minimsg.parsing.segments import Segment, ToolCallEnd, ToolCallInput, ToolCallStart

FUNCTION: Final = "<function="
PARAMETER: Final = "<parameter="
AROUND_NAME: Final = WHITE_SPACE + "\"'"
END_OF_VALUE: Final = "</parameter>"
ENDS: Final = ("</function>", hermes.CLOSING)


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
        name = self._read.strip(AROUND_NAME)
        head = f"{', ' if self._is_begun else '{'}{json.dumps(name, ensure_ascii=False)}: "
        self._value = Value(head, parameter_kinds(self._tool.input_schema, name))
        self._read, self._step = "", self._in_value
        return Outcome.CALL

    def _in_value(self, character: str) -> Outcome:
        assert self._value is not None
        self._value.push(character)
        if self._value.is_complete:
            self._say(self._value.finish())
            self._value, self._step = None, self._between
        return Outcome.CALL

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


class Value:
    """One parameter as a member of an object; `head` is what stands before its value."""

    def __init__(self, head: str, kinds: Kinds) -> None:
        self.is_complete = False
        self._head = head  # "" once it is out, and the quote of a string with it
        self._kinds = kinds
        self._is_first = True
        self._characters: list[str] = []  # that are not out

    def push(self, character: str) -> None:
        """Take a character in; the line break that ends the tag is none of the value."""
        if not (self._is_first and character == "\n"):
            self._characters.append(character)
        self._is_first = False
        if character == ">":
            end = "".join(self._characters[-len(END_OF_VALUE) :])
            self.is_complete = end.endswith(END_OF_VALUE)

    def stream(self) -> str:
        """What is certain so far, if it is a string: not the rest of its quotes."""
        text = "".join(self._characters)
        certain = text[: len(text) - held_length(text, (END_OF_VALUE, f"\n{END_OF_VALUE}"))]
        if self._kinds != STRING or not certain:
            return ""
        self._characters = [text[len(certain) :]]
        return self._opening() + _escaped(certain)

    def finish(self) -> str:
        """What is not out of a value that is complete."""
        text = "".join(self._characters)[: -len(END_OF_VALUE)].removesuffix("\n")
        if not self._head:
            return _escaped(text) + '"'
        return self._head + as_json(text, self._kinds)

    def closing(self) -> str:
        """What ends a value that breaks off: nothing if none of it is out."""
        return "" if self._head else '"'

    def _opening(self) -> str:
        opening, self._head = self._head and f'{self._head}"', ""
        return opening


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_call(opening: str, tools: Tools) -> CallReader:
    """The reader of what follows a tag."""
    if opening == FUNCTION:
        return XmlCall(tools, has_function=True)
    return EitherCall(
        lambda first: (
            XmlCall(tools, has_function=False)
            if first == FUNCTION[0]
            else JsonCalls(tools, is_tagged=True)
        )
    )


QWEN_XML: Final = Format(
    openings=(hermes.OPENING, FUNCTION), closings=(hermes.CLOSING,), reader=read_call
)
