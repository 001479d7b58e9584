"""Rules about thinking: whether the model can, and what of it may come back.

A model that cannot think is asked in vain in profile `compat` (`wishes.py` lists it);
`adaptive` and `between_tools` are told apart in `gates.py`, as the hosted API does.
Source: Messages API reference, extended thinking; public error reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import (
    RedactedThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from minimsg.protocol.options import (
    AdaptiveThinking,
    BetweenToolsThinking,
    DisabledThinking,
    EnabledThinking,
)
from minimsg.protocol.turns import blocks_of, turns_of

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest

UPDATES = "thinking-display-updates-2026-08-18"


def thinking_is_supported(request: PromptRequest, dialect: Dialect) -> None:
    if isinstance(request.thinking, EnabledThinking) and not dialect.takes("thinking"):
        why = '"thinking.type.enabled" is not supported for this model'
        raise InvalidRequest("", f"{why}. Leave `thinking` out.")


def display_is_known(request: PromptRequest, dialect: Dialect) -> None:
    thinking = request.thinking
    if not isinstance(thinking, (EnabledThinking, AdaptiveThinking)) or not dialect.is_strict:
        return
    if thinking.display == "updates" and not dialect.has_beta(UPDATES):
        why = "Input should be 'summarized' or 'omitted'"
        raise InvalidRequest(f"thinking.{thinking.type}.display", why)


def thinking_between_tools_is_moderate(request: PromptRequest, dialect: Dialect) -> None:
    effort = request.output_config.effort if request.output_config else None
    if not dialect.is_strict or not isinstance(request.thinking, BetweenToolsThinking):
        return
    if effort in ("xhigh", "max"):
        why = f"effort '{effort}' is not supported with thinking of type 'between_tools'"
        raise InvalidRequest("output_config.effort", why)


def no_thinking_is_redacted(request: PromptRequest, dialect: Dialect) -> None:
    """Nothing is redacted here, so no data can be ours; without thinking none is read.

    Whether a signature is ours needs a key: `server/signatures.py`.
    """
    is_off = request.thinking is None or isinstance(request.thinking, DisabledThinking)
    if not dialect.is_strict or is_off:
        return
    for path, _ in blocks_of(request.messages, RedactedThinkingBlock):
        raise InvalidRequest(path, "Invalid `data` in `redacted_thinking` block")


def a_tool_loop_begins_with_thinking(request: PromptRequest, dialect: Dialect) -> None:
    if not dialect.is_strict or not isinstance(request.thinking, EnabledThinking):
        return
    turns = turns_of(request.messages, skip="system")[-2:]
    if len(turns) < 2 or turns[0].role != "assistant":
        return
    is_loop = any(isinstance(placed.block, ToolResultBlock) for placed in turns[1].blocks)
    has_call = any(isinstance(placed.block, ToolUseBlock) for placed in turns[0].blocks)
    first = turns[0].blocks[0]
    if is_loop and has_call and first.block.type not in ("thinking", "redacted_thinking"):
        why = f"Expected thinking or redacted_thinking, but found {first.block.type}"
        raise InvalidRequest(f"{first.path}.type", why)
