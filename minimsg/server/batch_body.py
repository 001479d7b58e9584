"""The body that creates a message batch: inflated, counted, and written to disk as it comes.

It may be eight times as large as any other and is read in parts (`protocol/batches.py`), so
it is never in memory as a whole. The file it comes to is the store's and ends with the
request. Headers are those of `body.py`; the time it may take grows with what has come.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.server.body import check_type, encoding_of, paced, too_large
from minimsg.server.inflating import Inflating
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
        raise too_large(LIMITS.batch_bytes)
    async with request.app[SERVER].store.files.receive() as incoming:
        await _receive(request, incoming, Inflating(encoding) if encoding else None)
        body = await asyncio.to_thread(_map, incoming.path)
        try:
            yield body
        finally:
            if isinstance(body, mmap):
                with suppress(BufferError):  # a traceback still holds it, and will let go
                    body.close()


async def _receive(request: web.Request, incoming: Incoming, inflating: Inflating | None) -> None:
    try:
        async with paced() as pace:
            async for data in request.content.iter_any():
                pace.count(len(data))
                await asyncio.to_thread(_write, data, incoming, inflating)
    except (web.RequestPayloadError, HttpProcessingError):
        raise InvalidRequest("", "The request body is not valid HTTP.") from None
    if inflating is not None:
        inflating.flush()


def _write(data: bytes, incoming: Incoming, inflating: Inflating | None) -> None:
    for piece in (data,) if inflating is None else inflating.push(data):
        if incoming.size_bytes + len(piece) > LIMITS.batch_bytes:
            code = None if inflating is None else "request_body_too_large_after_decoding"
            raise too_large(LIMITS.batch_bytes, code)
        incoming.write(piece)


def _map(path: Path) -> bytes | mmap:
    """The file at `path`; an empty one cannot be mapped."""
    with path.open("rb") as file:
        return mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""
