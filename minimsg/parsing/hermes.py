"""Hermes calls, as Qwen2.5, QwQ and Qwen3 write them.

    <tool_call>
    {"name": "now", "arguments": {"zone": "UTC"}}
    </tool_call>

SmolLM2 writes a list between the tags. What stands there: `json_calls.py`.
Source: the chat templates published with these models.
"""

from __future__ import annotations

from typing import Final

from minimsg.parsing.calls import Format, Tools
from minimsg.parsing.json_calls import JsonCalls

OPENING: Final = "<tool_call>"
CLOSING: Final = "</tool_call>"


def read_calls(opening: str, tools: Tools) -> JsonCalls:
    """The reader of what follows the tag."""
    return JsonCalls(tools, is_tagged=True)


HERMES: Final = Format(openings=(OPENING,), closings=(CLOSING,), reader=read_calls)
