"""Values and failures to HTTP responses: JSON, the error envelope, their headers.

Knows aiohttp and headers, and what a client may learn of a failure; what an envelope is
made of is in `protocol/envelope.py`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from minimsg.errors import GenerationFailed, InternalError, RequestError
from minimsg.protocol.envelope import envelope
from minimsg.protocol.sse import to_json
from minimsg.server.traces import trace

logger = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# SDKs retry what is 408, 409, 429 or above 499, and wait as long as `retry-after` says. Of
# these only a 501 stays what it is, however often it is asked for.
RETRY_HEADERS: Final[dict[int, dict[str, str]]] = {
    501: {"x-should-retry": "false"},
    529: {"retry-after": "1"},
}
MAX_IGNORED_CHARS: Final = 1_000  # clients refuse headers of more than 8 KB


def json_response(
    value: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """`value` as the body."""
    return web.Response(
        body=to_json(value).encode(),
        status=status,
        headers=headers,
        content_type="application/json",
    )


def as_request_error(error: Exception, request_id: str) -> RequestError:
    """`error` as the client may see it; one that nobody planned is logged and not shown."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, GenerationFailed):
        return InternalError(f"The reply could not be completed: {error}")
    logger.error("%s failed:\n%s", request_id, trace(error))
    return InternalError("Internal server error")


def error_response(error: RequestError, request_id: str) -> web.Response:
    """`error` in the API's envelope."""
    headers = RETRY_HEADERS.get(error.status, {}) | error.headers
    return json_response(envelope(error, request_id), status=error.status, headers=headers)


def ignored_header(paths: list[str]) -> dict[str, str]:
    """The header `minimsg-ignored`: the fields of a request that nobody read.

    Unknown keys are whatever a client sends, so only harmless characters go out.
    """
    if not paths:
        return {}
    shown: list[str] = []
    room = MAX_IGNORED_CHARS
    for path in paths:
        shown.append(re.sub(r"[^A-Za-z0-9_.-]", "?", path))
        room -= len(shown[-1]) + 2
        if room < 0:
            shown[-1] = f"and {len(paths) - len(shown) + 1} more"
            break
    return {"minimsg-ignored": ", ".join(shown)}
