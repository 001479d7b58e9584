"""What a reply and a count say of the edits that `context_management` asked for.

Knows the shapes; what is cleared, and when, is in `prompt/edits.py`.
Source: Messages API reference, context management.
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class ClearedToolUses(TypedDict):
    """Old results of tools were taken out."""

    type: Literal["clear_tool_uses_20250919"]
    cleared_input_tokens: int
    cleared_tool_uses: int


class ClearedThinking(TypedDict):
    """Old thinking was taken out."""

    type: Literal["clear_thinking_20251015"]
    cleared_input_tokens: int
    cleared_thinking_turns: int


AppliedEdit = ClearedToolUses | ClearedThinking


class ContextEdits(TypedDict):
    """`context_management` of a message, and of the stream's last `message_delta`."""

    applied_edits: list[AppliedEdit]


class ContextCount(TypedDict):
    """`context_management` of a count: the tokens before any edit."""

    original_input_tokens: int
