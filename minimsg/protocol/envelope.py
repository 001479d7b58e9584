"""How a failure looks on the wire: the same object as a response body and as an SSE event.

Knows the envelope; the failures and their statuses are in `errors.py`, the way to HTTP
is `server/respond.py`. Source: Messages API error page.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from minimsg.errors import RequestError


class ErrorObject(TypedDict):
    """What went wrong."""

    type: str
    message: str
    details: NotRequired[dict[str, object]]  # what a client may key on; `error_code` first


class ErrorEvent(TypedDict):
    """The envelope; in a stream it is the last event."""

    type: Literal["error"]
    error: ErrorObject
    request_id: str


def envelope(error: RequestError, request_id: str) -> ErrorEvent:
    """`error` as the client sees it."""
    body: ErrorObject = {"type": error.type, "message": error.message}
    code = {} if error.error_code is None else {"error_code": error.error_code}
    if details := code | error.details:
        body["details"] = details
    return {"type": "error", "error": body, "request_id": request_id}
