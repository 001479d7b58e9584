"""The body of a request as bytes: JSON by its headers, whole, in time and not too large.

Limits and headers are checked before a byte is read, sizes while reading and before
inflating for good. aiohttp's own inflating is off (`app.py`): it answers what it cannot
inflate in its own words. Knows nothing of what is in the body: next, `prepare.py`.

A body that is late is answered 408, which clients send again by themselves; the hosted
API is said to answer 400 with the same error code, which they do not.
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

# Of zlib's `wbits`: a window of up to 2^15 bytes, behind a header of gzip, of zlib or none.
GZIP, ZLIB, RAW = 15 + 16, 15, -15
INFLATED: Final = ("gzip", "x-gzip", "deflate")
PIECE_BYTES: Final = 64 * 1024  # that are inflated at a time to see how much there is


async def read_body(request: web.Request) -> bytes:
    """The whole body, inflated.

    Raises InvalidRequest, RequestTimeout, RequestTooLarge, UnsupportedMediaType.
    """
    check_type(request)
    encoding = encoding_of(request)
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
    return await asyncio.to_thread(inflate, body, encoding)


def inflate(body: bytes, encoding: str) -> bytes:
    """`body` without its compression. Raises InvalidRequest, RequestTooLarge.

    It is inflated twice: what is too large must not take up the memory that it claims.
    """
    wbits = window_bits(encoding, body)
    try:
        size = _inflated_size(body, wbits)
        if size > LIMITS.body_bytes:
            raise _too_large(error_code="request_body_too_large_after_decoding")
        return zlib.decompress(body, wbits, bufsize=size + 1)
    except zlib.error:
        raise badly_encoded() from None


def window_bits(encoding: str, start: bytes) -> int:
    """zlib's `wbits` for a body that begins with `start`, two bytes at least."""
    return GZIP if encoding != "deflate" else ZLIB if _has_zlib_header(start) else RAW


def badly_encoded() -> InvalidRequest:
    """The body cannot be inflated."""
    return InvalidRequest(
        "content-encoding",
        "the body is not what it says",
        error_code="request_body_encoding_invalid",
    )


def _has_zlib_header(body: bytes) -> bool:
    """Whether a deflated body keeps to the standard (RFC 1950); some clients leave the header."""
    return len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0


def _inflated_size(body: bytes, wbits: int) -> int:
    """How many bytes `body` inflates to; not all are counted past the limit. Raises zlib.error."""
    stream, size = zlib.decompressobj(wbits), 0
    for start in range(0, len(body), PIECE_BYTES):
        data, is_full = body[start : start + PIECE_BYTES], True
        while is_full:
            num_bytes = len(stream.decompress(data, PIECE_BYTES))
            data, is_full = stream.unconsumed_tail, num_bytes == PIECE_BYTES
            size += num_bytes
            if size > LIMITS.body_bytes:
                return size
        if stream.eof:
            break
    if not stream.eof or stream.unused_data or start + PIECE_BYTES < len(body):
        raise zlib.error("too short or too long")
    return size


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
