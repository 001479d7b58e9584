"""What a request of a message batch may not ask for. Source: Messages API, batch processing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import MessagesRequest


def a_batched_request_asks_for_a_message(request: MessagesRequest, dialect: Dialect) -> None:
    """It has nobody to stream to, no hurry, one model, and an answer."""
    if not dialect.is_in_batch:
        return
    wishes = {
        "stream": request.stream,
        "speed": request.speed is not None,
        "fallbacks": request.fallbacks is not None,
    }
    for path, is_wished in wishes.items():
        if is_wished:
            raise InvalidRequest(path, "is not supported in a message batch")
    if request.max_tokens == 0:
        raise InvalidRequest("max_tokens", "must be at least 1 in a message batch")
