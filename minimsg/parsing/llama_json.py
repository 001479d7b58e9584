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

from minimsg.parsing.calls import Bare, CallReader, Format, Tools
from minimsg.parsing.either import EitherCall
from minimsg.parsing.json_calls import JsonCalls
from minimsg.parsing.python_call import PythonCall

PYTHON_TAG: Final = "<|python_tag|>"


def read_calls(opening: str, tools: Tools) -> CallReader:
    """The reader of what follows the tag, or of JSON without one."""
    if opening != PYTHON_TAG:
        return JsonCalls(tools, is_tagged=False)
    return EitherCall(
        lambda first: JsonCalls(tools, is_tagged=True) if first in "{[" else PythonCall(tools)
    )


LLAMA_JSON: Final = Format(
    openings=(PYTHON_TAG,), closings=("<|eom_id|>",), reader=read_calls, bare=Bare.START
)
