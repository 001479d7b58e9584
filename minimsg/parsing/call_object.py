"""One call as a JSON object: `{"name": "now", "arguments": {"zone": "UTC"}}`.

Tolerates what models do: the arguments before the name, other words for `arguments`,
arguments that are a string of JSON, other keys, the call inside `"function"`, doubled
braces around the call or its arguments. Knows nothing of tags; several objects and what
surrounds them: `json_calls.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from minimsg.parsing.calls import Outcome, Tools
from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.json_text import JsonReader
from minimsg.parsing.segments import Segment, ToolCallEnd, ToolCallInput, ToolCallStart
from minimsg.parsing.tool_input import ToolInput

NAME_KEYS: Final = frozenset({"name", "function"})
INPUT_KEYS: Final = frozenset({"arguments", "parameters", "args", "input"})
OTHER_KEYS: Final = frozenset({"id", "type"})


class CallObject:
    """The object, from its opening brace on.

    It starts as a call once its name is complete and known, and, if `needs_input`, its
    arguments have begun too. From then on it cannot become text again: where its JSON
    breaks, it is closed.
    """

    def __init__(self, tools: Tools, *, needs_input: bool) -> None:
        self.is_open = False  # has started, has not ended
        self.is_complete = False
        self._tools = tools
        self._needs_input = needs_input
        self._segments: list[Segment] = []
        self._step: Callable[[str], bool] = self._at_key
        self._depth = 0  # braces open around the members
        self._key: str | None = None
        self._value = JsonReader()
        self._name: str | None = None
        self._input: ToolInput | None = None

    def push(self, character: str) -> Outcome:
        """DONE before it has started; CALL or BROKEN after that, and BROKEN ends it."""
        if self._step(character):
            return Outcome.CALL if self.is_open or self.is_complete else Outcome.MAYBE
        if not self.is_open:
            return Outcome.DONE
        self._end()
        return Outcome.BROKEN

    def take(self) -> list[Segment]:
        """The segments that are certain and were not taken yet."""
        if self.is_open and self._input is not None:
            self._segments += map(ToolCallInput, self._input.take())
        taken, self._segments = self._segments, []
        return taken

    def flush(self, *, is_cut: bool) -> list[Segment]:
        """The last segments, now that no more text comes."""
        if self.is_open and is_cut:
            rest = [] if self._input is None else self._input.cut()
            return [*self.take(), *map(ToolCallInput, rest)]
        if self.is_open:
            self._end()
        return self.take()

    def _at_key(self, character: str) -> bool:
        if character in "\"'" and self._depth:
            self._value = JsonReader()
            self._value.push(character)
            self._step = self._in_key
        elif character == "{" and self._key is None:
            self._depth += 1
        elif character == "}":
            return self._end_brace()
        elif character not in WHITE_SPACE:
            return False
        return True

    def _in_key(self, character: str) -> bool:
        if not self._value.push(character):
            return False
        if self._value.is_complete:
            self._key = json.loads(self._value.take())
            self._step = self._at_colon
            if not self.is_open and self._needs_input and self._key not in KNOWN_KEYS:
                return False
        return True

    def _at_colon(self, character: str) -> bool:
        if character == ":":
            self._step = self._at_value
        elif character not in WHITE_SPACE:
            return False
        return True

    def _at_value(self, character: str) -> bool:
        if character in WHITE_SPACE:
            return True
        if character == "{" and self._key == "function":
            self._step, self._key = self._at_key, None
            return self._at_key(character)
        if character == "{" and self._key in INPUT_KEYS and self._input is None:
            self._set_input(ToolInput(is_eager=self._is_eager()))
            self._step = self._at_input
        else:
            self._value = JsonReader()
            self._step = self._in_value
        return self._step(character)

    def _at_input(self, character: str) -> bool:
        """At the brace of the input, which may come twice."""
        assert self._input is not None
        if character == "{" and self._input.is_open:
            self._depth += 1
            return True
        if self._input.is_open and character not in WHITE_SPACE:
            self._step = self._in_input
        return self._in_input(character)

    def _in_input(self, character: str) -> bool:
        assert self._input is not None
        if not self._input.push(character):
            return False
        if self._input.is_complete:
            self._step = self._after_value
        return True

    def _in_value(self, character: str) -> bool:
        """Any value but an input that is an object."""
        is_read = self._value.push(character)
        if not self._value.is_complete:
            return is_read
        self._step = self._after_value
        if not self._set_value(self._value.take()):
            return False
        return is_read or self._after_value(character)

    def _after_value(self, character: str) -> bool:
        if character == ",":
            self._step = self._at_key
        elif character == "}":
            return self._end_brace()
        elif character not in WHITE_SPACE:
            return False
        return True

    def _set_value(self, text: str) -> bool:
        """Take the value of `_key` over; False if it names no tool."""
        is_string = text.startswith('"')
        if self._key in NAME_KEYS and self._name is None and is_string:
            name = json.loads(text).strip(WHITE_SPACE)
            if not self._may_call(name):
                return False
            self._name = name
            self._start()
        elif self._key in INPUT_KEYS and self._input is None:
            self._set_input(_input_of(json.loads(text) if is_string else ""))
        return True

    def _may_call(self, name: str) -> bool:
        """Whether it names a tool; one that is held, in a way that a grammar has."""
        return name in self._tools and not (self._depth > 1 and self._tools[name].is_held)

    def _set_input(self, input: ToolInput) -> None:
        self._input = input
        self._start()

    def _is_eager(self) -> bool:
        return self._name is not None and self._tools[self._name].is_eager

    def _start(self, *, is_whole: bool = False) -> None:
        """Start the call if enough of it has come."""
        if self._name is None or self.is_open:
            return
        if self._input is not None or is_whole or not self._needs_input:
            self.is_open = True
            self._segments.append(ToolCallStart(self._name))

    def _end_brace(self) -> bool:
        if self._depth > 1:
            self._depth -= 1
            self._step = self._after_value
            return True
        self._start(is_whole=True)
        if not self.is_open:
            return False
        self._end()
        return True

    def _end(self) -> None:
        rest = ["{}"] if self._input is None else self._input.close()
        self._segments += [*map(ToolCallInput, rest), ToolCallEnd()]
        self.is_open, self.is_complete = False, True


KNOWN_KEYS: Final = NAME_KEYS | INPUT_KEYS | OTHER_KEYS


def _input_of(text: str) -> ToolInput:
    """The object that a string of JSON is, as far as it is one."""
    input = ToolInput(is_eager=False)
    text = text.strip(WHITE_SPACE)
    for character in text if text.startswith("{") else "":
        if not input.push(character):
            break
    return input
