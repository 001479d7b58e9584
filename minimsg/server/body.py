"""The body of a request as bytes: JSON by its headers, whole, in time and not too large.

Limits and headers are checked before a byte is read, sizes while reading and before
inflating for good. aiohttp's own inflating is off (`app.py`): it answers what it cannot
inflate in its own words. What is alike for bodies of any size (`batch_body.py`,
`multipart.py`) is here, too. Knows nothing of what is in the body: next, `prepare.py`.

A body that is late is answered 408, which clients send again by themselves; the hosted
API is said to answer 400 with the same error code, which they do not.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from minimsg.errors import InvalidRequest, RequestTimeout, RequestTooLarge, UnsupportedMediaType
from minimsg.limits import LIMITS
from minimsg.server.inflating import PIECE_BYTES, Inflating, window_bits

INFLATED: Final = ("gzip", "x-gzip", "deflate")


async def read_body(request: web.Request) -> bytes:
    """The whole body, inflated.

    Raises InvalidRequest, RequestTimeout, RequestTooLarge, UnsupportedMediaType.
    """
    check_type(request)
    encoding = encoding_of(request)
    if (request.content_length or 0) > LIMITS.body_bytes:
        raise too_large(LIMITS.body_bytes)
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
    return await asyncio.to_thread(inflate, body, encoding)


def inflate(body: bytes, encoding: str) -> bytes:
    """`body` without its compression. Raises InvalidRequest, RequestTooLarge.

    It is inflated twice: what is too large must not take up the memory that it claims.
    """
    size, inflating = 0, Inflating(encoding)
    for start in range(0, len(body), PIECE_BYTES):
        for piece in inflating.push(body[start : start + PIECE_BYTES]):
            size += len(piece)
            if size > LIMITS.body_bytes:
                raise too_large(LIMITS.body_bytes, "request_body_too_large_after_decoding")
    inflating.flush()
    return zlib.decompress(body, window_bits(encoding, body), bufsize=size + 1)


def check_type(request: web.Request) -> None:
    """Refuse what a web page may send to any address without asking: text and forms."""
    if request.content_type != "application/json":
        seen = request.headers.get("content-type", "none")[:80]
        raise UnsupportedMediaType(f"content-type: must be application/json, not {seen!r}")
    charset = (request.charset or "utf-8").lower()
    if charset not in ("utf-8", "utf8"):
        raise InvalidRequest("content-type", "must be UTF-8", error_code="unsupported_charset")


def encoding_of(request: web.Request) -> str | None:
    """How the body is compressed; None: not at all. Raises InvalidRequest."""
    encoding = ", ".join(request.headers.getall("content-encoding", ["identity"])).strip().lower()
    if encoding == "identity":
        return None
    if encoding not in INFLATED:
        raise InvalidRequest(
            "content-encoding",
            f"must be gzip, deflate or identity, not {encoding[:80]!r}",
            error_code="request_body_encoding_unsupported",
        )
    return encoding


def too_large(most: int, error_code: str | None = None) -> RequestTooLarge:
    """A body has more than `most` bytes."""
    why = f"Request exceeds the maximum size of {most} bytes."
    return RequestTooLarge(why, error_code=error_code)


class Pace:
    """How long a body may still take: a while to begin with, and more for what has come."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._deadline = asyncio.get_running_loop().time() + LIMITS.body_timeout_s

    def count(self, num_bytes: int) -> None:
        """So much has come."""
        self._deadline += num_bytes / LIMITS.upload_bytes_per_s
        self._timeout.reschedule(self._deadline)


@asynccontextmanager
async def paced() -> AsyncIterator[Pace]:
    """Read a body of any size within the block. Raises RequestTimeout."""
    try:
        async with asyncio.timeout(LIMITS.body_timeout_s) as timeout:
            yield Pace(timeout)
    except TimeoutError:
        raise RequestTimeout(
            "The request body did not arrive in time.", error_code="request_body_timeout"
        ) from None


async def _read(request: web.Request) -> bytes:
    body = bytearray()
    try:
        async for data in request.content.iter_any():
            body += data
            if len(body) > LIMITS.body_bytes:
                raise too_large(LIMITS.body_bytes)
    except (web.RequestPayloadError, HttpProcessingError):  # the second from aiohttp's own Python
        raise InvalidRequest("", "The request body is not valid HTTP.") from None
    return bytes(body)
