"""Calls of Llama 3: the reply is the call, alone or after a tag.

    <|python_tag|>{"name": "now", "parameters": {"zone": "UTC"}}
    <|python_tag|>brave_search.call(query="weather")

These models write JSON calls with the tag and without it, so that a brace that begins the
reply begins a call as well. Further calls follow a semicolon. Reads: `json_calls.py`, and
`python_call.py` for tools that are built in.
Source: Llama 3.1 prompt format, "JSON based tool calling".
"""

from __future__ import annotations

from typing import Final

from minimsg.parsing.calls import Bare, CallReader, Format, Outcome, Tools
from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.json_calls import JsonCalls
from minimsg.parsing.python_call import PythonCall
from minimsg.parsing.segments import Segment

PYTHON_TAG: Final = "<|python_tag|>"


class TaggedCall:
    """What follows the tag: its first character says in which of the two ways it is written."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._reader: CallReader | None = None  # None: only white space has come

    def push(self, character: str) -> Outcome:
        if self._reader is None and character in WHITE_SPACE:
            return Outcome.MAYBE
        if self._reader is None:
            is_json = character in "{["
            self._reader = (
                JsonCalls(self._tools, is_tagged=True) if is_json else PythonCall(self._tools)
            )
        return self._reader.push(character)

    def take(self) -> list[Segment]:
        return self._reader.take() if self._reader else []

    def flush(self, *, is_cut: bool) -> list[Segment]:
        return self._reader.flush(is_cut=is_cut) if self._reader else []


def read_calls(opening: str, tools: Tools) -> CallReader:
    """The reader of what follows the tag, or of an object without one."""
    return TaggedCall(tools) if opening == PYTHON_TAG else JsonCalls(tools, is_tagged=False)


LLAMA_JSON: Final = Format(
    openings=(PYTHON_TAG,), closings=("<|eom_id|>",), reader=read_calls, bare=Bare.START
)
