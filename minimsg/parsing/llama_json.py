"""JSON calls of Llama 3: the reply is the call, alone or after a tag.

    <|python_tag|>{"name": "now", "parameters": {"zone": "UTC"}}

The tag is a control token, which does not show as text, so that a brace that begins the
reply begins a call as well. Further calls follow a semicolon. Reads: `json_calls.py`.
Source: Llama 3.1 prompt format, "JSON based tool calling".
"""

from __future__ import annotations

from typing import Final

from minimsg.parsing.calls import Bare, Format, Tools
from minimsg.parsing.json_calls import JsonCalls

PYTHON_TAG: Final = "<|python_tag|>"


def read_calls(opening: str, tools: Tools) -> JsonCalls:
    """The reader of what follows the tag, or of an object without one."""
    return JsonCalls(tools, is_tagged=opening == PYTHON_TAG)


LLAMA_JSON: Final = Format(
    openings=(PYTHON_TAG,), closings=("<|eom_id|>",), reader=read_calls, bare=Bare.START
)
