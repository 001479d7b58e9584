"""Rules about the reply that is asked for: its length, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import MessagesRequest


def max_tokens_is_possible(request: MessagesRequest, dialect: Dialect) -> None:
    if request.max_tokens is None:
        return
    if request.max_tokens > LIMITS.max_tokens:
        raise InvalidRequest(
            "max_tokens",
            f"{request.max_tokens} > {LIMITS.max_tokens}, which is the maximum allowed "
            f"number of output tokens for {request.model}",
        )
    if request.max_tokens == 0 and request.stream:
        raise InvalidRequest("max_tokens", "0 only fills the cache and cannot be streamed")


def stop_sequences_are_visible(request: MessagesRequest, dialect: Dialect) -> None:
    for sequence in request.stop_sequences:
        if not sequence.strip():
            raise InvalidRequest("stop_sequences", "each stop sequence must contain non-whitespace")
