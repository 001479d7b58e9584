"""The body that creates a message batch: inflated, counted, and written to disk as it comes.

It may be eight times as large as any other and is read in parts (`protocol/batches.py`), so
it is never in memory as a whole. The file it comes to is the store's and ends with the
request. Headers are those of `body.py`, the time it may take is an upload's (`multipart.py`).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from minimsg.errors import InvalidRequest, RequestTimeout, RequestTooLarge
from minimsg.limits import LIMITS
from minimsg.server.body import (
    PIECE_BYTES,
    badly_encoded,
    check_type,
    encoding_of,
    window_bits,
)
from minimsg.server.multipart import Pace
from minimsg.server.state import SERVER
from minimsg.store.blobs import Incoming


@asynccontextmanager
async def body_on_disk(request: web.Request) -> AsyncIterator[bytes | mmap]:
    """The whole body, inflated, in a file that is mapped into memory.

    Raises InvalidRequest, RequestTimeout, RequestTooLarge, UnsupportedMediaType, StoreFull.
    """
    check_type(request)
    encoding = encoding_of(request)
    if (request.content_length or 0) > LIMITS.batch_bytes:
        raise _too_large()
    async with request.app[SERVER].store.files.receive() as incoming:
        await _receive(request, incoming, Inflating(encoding) if encoding else None)
        body = await asyncio.to_thread(_map, incoming.path)
        try:
            yield body
        finally:
            if isinstance(body, mmap):
                with suppress(BufferError):  # a traceback still holds it, and will let go
                    body.close()


class Inflating:
    """A compressed body on its way, a bounded number of bytes at a time."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._start = b""
        self._stream: zlib._Decompress | None = None  # once two bytes have come

    def push(self, data: bytes) -> Iterator[bytes]:
        """What `data` inflates to. Raises InvalidRequest."""
        if self._stream is None:
            data = self._start = self._start + data
            if len(data) < 2:
                return
            self._stream = zlib.decompressobj(window_bits(self._encoding, data))
        is_full = True
        while is_full:
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise badly_encoded() from None
            yield piece
            data, is_full = self._stream.unconsumed_tail, len(piece) == PIECE_BYTES
        if self._stream.unused_data:
            raise badly_encoded()

    def flush(self) -> None:
        """Nothing more comes. Raises InvalidRequest if something is missing."""
        if self._stream is None or not self._stream.eof:
            raise badly_encoded()


async def _receive(request: web.Request, incoming: Incoming, inflating: Inflating | None) -> None:
    try:
        async with asyncio.timeout(LIMITS.body_timeout_s) as timeout:
            pace = Pace(timeout)
            async for data in request.content.iter_any():
                pace.count(len(data))
                await asyncio.to_thread(_write, data, incoming, inflating)
    except TimeoutError:
        raise RequestTimeout(
            "The request body did not arrive in time.", error_code="request_body_timeout"
        ) from None
    except (web.RequestPayloadError, HttpProcessingError):
        raise InvalidRequest("", "The request body is not valid HTTP.") from None
    if inflating is not None:
        inflating.flush()


def _write(data: bytes, incoming: Incoming, inflating: Inflating | None) -> None:
    for piece in (data,) if inflating is None else inflating.push(data):
        if incoming.size_bytes + len(piece) > LIMITS.batch_bytes:
            code = None if inflating is None else "request_body_too_large_after_decoding"
            raise _too_large(code)
        incoming.write(piece)


def _map(path: Path) -> bytes | mmap:
    """The file at `path`; an empty one cannot be mapped."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""


def _too_large(error_code: str | None = None) -> RequestTooLarge:
    why = f"Request exceeds the maximum size of {LIMITS.batch_bytes} bytes."
    return RequestTooLarge(why, error_code=error_code)
