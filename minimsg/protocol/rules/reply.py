"""Rules about the reply that is asked for: its length, its end, how it is drawn.

Source: Messages API reference, request body and the change list of version 2026-10-21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.options import DisabledThinking, EnabledThinking
from minimsg.protocol.tools import AnyChoice, NamedChoice

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import MessagesRequest

INTERLEAVED = "interleaved-thinking-2025-05-14"


def max_tokens_is_possible(request: MessagesRequest, dialect: Dialect) -> None:
    if request.max_tokens is not None and request.max_tokens > LIMITS.max_tokens:
        raise InvalidRequest(
            "max_tokens",
            f"{request.max_tokens} > {LIMITS.max_tokens}, which is the maximum allowed "
            f"number of output tokens for {request.model}",
        )


def max_tokens_leaves_room_to_think(request: MessagesRequest, dialect: Dialect) -> None:
    """Thinking between tool calls has a budget over several replies."""
    thinking = request.thinking
    if not isinstance(thinking, EnabledThinking) or request.max_tokens is None:
        return
    if request.max_tokens <= thinking.budget_tokens and not dialect.has_beta(INTERLEAVED):
        raise InvalidRequest("", "`max_tokens` must be greater than `thinking.budget_tokens`")


def a_reply_of_nothing_is_only_that(request: MessagesRequest, dialect: Dialect) -> None:
    """`max_tokens: 0` fills the cache; it cannot ask for anything that a reply must hold."""
    if request.max_tokens != 0:
        return
    wishes = {
        "stream": request.stream,
        "thinking": request.thinking and not isinstance(request.thinking, DisabledThinking),
        "output_format": request.output_format,
        "output_config.format": request.output_config and request.output_config.format,
        "tool_choice": isinstance(request.tool_choice, (AnyChoice, NamedChoice)),
        "compaction": request.compaction,
    }
    for path, is_wished in wishes.items():
        if is_wished:
            why = f"0 only fills the cache and cannot be combined with `{path}`"
            raise InvalidRequest("max_tokens", why)


def stop_sequences_are_visible(request: MessagesRequest, dialect: Dialect) -> None:
    for sequence in request.stop_sequences:
        if not sequence.strip():
            raise InvalidRequest("stop_sequences", "each stop sequence must contain non-whitespace")


def sampling_is_as_hosted(request: MessagesRequest, dialect: Dialect) -> None:
    """Local servers take more; the newer version takes none of it, which is a gate."""
    if not dialect.is_strict:
        return
    if request.temperature is not None and request.temperature > 1:
        raise InvalidRequest("temperature", "Input should be less than or equal to 1")
    if request.temperature is not None and request.top_p is not None:
        why = "`temperature` and `top_p` cannot both be specified for this model"
        raise InvalidRequest("", f"{why}. Please use only one.")
    if isinstance(request.thinking, EnabledThinking):
        _sampling_lets_think(request)


def _sampling_lets_think(request: MessagesRequest) -> None:
    if request.temperature not in (None, 1):
        raise InvalidRequest("", "`temperature` may only be set to 1 when thinking is enabled")
    if request.top_p is not None and request.top_p < 0.95:
        why = "`top_p` must be at least 0.95 when thinking is enabled"
        raise InvalidRequest("", why)
    if request.top_k is not None:
        raise InvalidRequest("", "`top_k` must be unset when thinking is enabled")
