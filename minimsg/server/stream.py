"""Events to one client as they come: server-sent events over a response that stays open.

The status line waits for the first event: until then a failure is an ordinary error
response. After it, a failure is an `error` event, and then the end. A silent stream gets
pings, but only while the engine is alive: a ping resets the client's watchdog. A client
that does not read is dropped by its connection (`connections.py`). Knows HTTP and events,
not where they come from.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from minimsg.protocol.envelope import envelope
from minimsg.protocol.events import PING
from minimsg.protocol.sse import encode
from minimsg.server.connections import FILLER
from minimsg.server.respond import as_request_error
from minimsg.server.state import REQUEST_ID, SERVER

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # or nginx collects the whole reply first
}
COMMENT: Final = b"3\r\n:\n\n\r\n"  # a chunk with a line that is no event


async def stream_response(
    request: web.Request, events: AsyncIterator[Mapping[str, object]], headers: dict[str, str]
) -> web.StreamResponse:
    """Send `events` to the client. Raises what the first of them raises, and ConnectionError."""
    first = await anext(events)
    response = web.StreamResponse(headers=HEADERS | headers)
    await response.prepare(request)
    writer = EventWriter(request, response)
    watching = asyncio.create_task(writer.watch())
    try:
        request[FILLER] = COMMENT
        await writer.write(first)
        await _write_rest(writer, events, request[REQUEST_ID])
        request[FILLER] = b""
        await writer.close()
    finally:
        watching.cancel()
    return response


async def _write_rest(
    writer: EventWriter, events: AsyncIterator[Mapping[str, object]], request_id: str
) -> None:
    try:
        async for event in events:
            await writer.write(event)
    except ConnectionError:
        raise
    except Exception as error:  # too late for a status
        await writer.write(envelope(as_request_error(error, request_id), request_id))


class EventWriter:
    """One open response, and how long it has been silent."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self._response = response
        self._server = request.app[SERVER]
        self._is_writing = False
        self._since = time.monotonic()  # when the latest write began or ended

    async def write(self, event: Mapping[str, object]) -> None:
        """Send one event. Raises ConnectionError when the client is gone."""
        await self._note(self._response.write(encode(event)))

    async def close(self) -> None:
        """End the response in order. Raises ConnectionError."""
        await self._note(self._response.write_eof())

    async def watch(self) -> None:
        """Ping a silent stream while the engine lives.

        Beside the writes, not around each: a timer for every token would cost more than
        the token.
        """
        interval_s = self._server.config.ping_interval_s
        with suppress(ConnectionError):  # which the next event meets, too
            while True:
                left_s = self._since + interval_s - time.monotonic()
                if left_s > 0 or self._is_writing:
                    await asyncio.sleep(left_s if left_s > 0 else interval_s)
                elif self._server.is_live:
                    await self.write(PING)
                else:
                    self._since = time.monotonic()

    async def _note(self, writing: Awaitable[None]) -> None:
        self._is_writing = True
        try:
            await writing
        finally:
            self._is_writing, self._since = False, time.monotonic()
