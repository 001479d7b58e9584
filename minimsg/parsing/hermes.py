"""Hermes calls, as Qwen2.5, QwQ and Qwen3 write them.

    <tool_call>
    {"name": "now", "arguments": {"zone": "UTC"}}
    </tool_call>

SmolLM2 writes a list between the tags. Small models forget the opening tag, so that a
reply that is JSON from its start may be a call as well. What stands there: `json_calls.py`.
Source: the chat templates published with these models.
"""

from __future__ import annotations

from typing import Final

from minimsg.parsing.calls import Bare, Format, Tools
from minimsg.parsing.json_calls import JsonCalls

OPENING: Final = "<tool_call>"
CLOSING: Final = "</tool_call>"


def read_calls(opening: str, tools: Tools) -> JsonCalls:
    """The reader of what follows the tag, or of JSON without one."""
    return JsonCalls(tools, is_tagged=opening == OPENING)


HERMES: Final = Format(openings=(OPENING,), closings=(CLOSING,), reader=read_calls, bare=Bare.START)
