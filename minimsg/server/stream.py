"""Events to one client as they come: server-sent events over a response that stays open.

The status line waits for the first event: until then a failure is an ordinary error
response. After it, a failure is an `error` event, and then the end. A silent stream gets
pings, but only while the engine is alive: a ping resets the client's watchdog. A client
that does not read is dropped. Knows HTTP and events, not where they come from.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Final

from aiohttp import web

from minimsg.protocol.envelope import envelope
from minimsg.protocol.events import PING, Event
from minimsg.protocol.sse import encode
from minimsg.server.respond import as_request_error
from minimsg.server.state import REQUEST_ID, SERVER

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # or nginx collects the whole reply first
}


async def stream_response(
    request: web.Request, events: AsyncIterator[Event], headers: dict[str, str]
) -> web.StreamResponse:
    """Send `events` to the client. Raises what the first of them raises, and ConnectionError."""
    first = await anext(events)
    response = web.StreamResponse(headers=HEADERS | headers)
    await response.prepare(request)
    writer = EventWriter(request, response)
    pinging = asyncio.create_task(writer.keep_alive())
    try:
        await writer.write(first)
        async for event in events:
            await writer.write(event)
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:  # too late for a status
        request_id = request[REQUEST_ID]
        await writer.write(envelope(as_request_error(error, request_id), request_id))
    finally:
        pinging.cancel()
    await writer.close()
    return response


class EventWriter:
    """One open response. Every write has a deadline, and no two overlap."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self._request = request
        self._response = response
        self._server = request.app[SERVER]
        self._loop = asyncio.get_running_loop()
        self._quiet_since = self._loop.time()
        self._is_writing = False

    async def write(self, event: Event) -> None:
        """Send one event. Raises ConnectionError when the client is gone or does not read."""
        await self._in_time(self._response.write(encode(event)))

    async def close(self) -> None:
        """End the response in order. Raises ConnectionError."""
        await self._in_time(self._response.write_eof())

    async def keep_alive(self) -> None:
        """Ping after every stretch of silence, as long as the engine lives."""
        interval = self._server.config.ping_interval_s
        while True:
            due = self._quiet_since + interval
            await asyncio.sleep(max(0, due - self._loop.time()))
            if self._quiet_since + interval > due:
                continue
            self._quiet_since = self._loop.time()
            if self._server.is_live and not self._is_writing:
                with suppress(ConnectionError):  # the reply meets it too, and ends
                    await self.write(PING)

    async def _in_time(self, writing: Awaitable[None]) -> None:
        self._is_writing = True
        try:
            async with asyncio.timeout(self._server.config.write_timeout_s):
                await writing
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise ConnectionResetError("the client does not read") from None
        finally:
            self._is_writing = False
            self._quiet_since = self._loop.time()
