"""The body of a request as bytes: JSON by its headers, whole, in time and not too large.

Limits and headers are checked before a byte is read, sizes while reading and while
inflating. aiohttp's own inflating is off (`app.py`): it answers what it cannot inflate
in its own words. Knows nothing of what is in the body.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from minimsg.errors import (
    InvalidRequest,
    RequestTimeout,
    RequestTooLarge,
    UnsupportedMediaType,
)
from minimsg.limits import LIMITS

# Of zlib's `wbits`: 15 is the largest window, 32 more takes gzip and zlib headers alike.
INFLATE: Final = {"gzip": 15 + 32, "deflate": 15 + 32}


async def read_body(request: web.Request) -> bytes:
    """The whole body, inflated.

    Raises InvalidRequest, RequestTimeout, RequestTooLarge, UnsupportedMediaType.
    """
    _check_type(request)
    encoding = _encoding(request)
    if (request.content_length or 0) > LIMITS.body_bytes:
        raise _too_large()
    try:
        async with asyncio.timeout(LIMITS.body_timeout_s):
            body = await _read(request)
    except TimeoutError:
        raise RequestTimeout(
            f"The request body did not arrive within {LIMITS.body_timeout_s:g} s.",
            error_code="request_body_timeout",
        ) from None
    if encoding is None:
        return body
    return await asyncio.to_thread(inflate, body, INFLATE[encoding])


def inflate(body: bytes, wbits: int) -> bytes:
    """`body` without its compression. Raises InvalidRequest, RequestTooLarge."""
    stream = zlib.decompressobj(wbits)
    try:
        inflated = stream.decompress(body, LIMITS.body_bytes + 1)
    except zlib.error:
        raise _not_inflatable() from None
    if len(inflated) > LIMITS.body_bytes:
        raise _too_large(error_code="request_body_too_large_after_decoding")
    if not stream.eof or stream.unused_data:
        raise _not_inflatable()
    return inflated


def _check_type(request: web.Request) -> None:
    """Refuse what a web page may send to any address without asking: text and forms."""
    if request.content_type != "application/json":
        seen = request.headers.get("content-type", "none")[:80]
        raise UnsupportedMediaType(f"content-type: must be application/json, not {seen!r}")
    charset = (request.charset or "utf-8").lower()
    if charset not in ("utf-8", "utf8"):
        raise InvalidRequest("content-type", "must be UTF-8", error_code="unsupported_charset")


def _encoding(request: web.Request) -> str | None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return None
    if encoding not in INFLATE:
        raise InvalidRequest(
            "content-encoding",
            f"must be gzip, deflate or identity, not {encoding[:80]!r}",
            error_code="request_body_encoding_unsupported",
        )
    return encoding


async def _read(request: web.Request) -> bytes:
    body = bytearray()
    try:
        async for data in request.content.iter_any():
            body += data
            if len(body) > LIMITS.body_bytes:
                raise _too_large()
    except (web.RequestPayloadError, HttpProcessingError):  # the second from aiohttp's own Python
        raise InvalidRequest("", "The request body is not valid HTTP.") from None
    return bytes(body)


def _too_large(error_code: str | None = None) -> RequestTooLarge:
    return RequestTooLarge(
        f"Request exceeds the maximum size of {LIMITS.body_bytes} bytes.", error_code=error_code
    )


def _not_inflatable() -> InvalidRequest:
    return InvalidRequest(
        "content-encoding",
        "the body is not what it says",
        error_code="request_body_encoding_invalid",
    )
