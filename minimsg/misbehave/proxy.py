"""The proxy before a server that behaves: passes everything on, and does one thing wrong.

A mutant that changes a stream gets it whole; any other stream flows on as it comes, until
one of the faults ends it. Knows HTTP and the mutant or the faults that it was given; never who
asks.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp
from aiohttp import web

from minimsg.misbehave.events import Event
from minimsg.misbehave.faults import Faults
from minimsg.misbehave.mutant import Answered, Asked, Mutant
from minimsg.protocol.sse import Decoder, to_json

logger = logging.getLogger("minimsg.http")  # what is no request is no news

HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade"}
)
MAX_BODY: Final = 64 * 1024**2
EVENT_END: Final = b"\n\n"
PASSES_ON: Final = Mutant("none", "Nothing is wrong", "")


class Proxy:
    """Stands before `upstream`. `mutant` and `faults` may be changed while it runs."""

    def __init__(
        self, upstream: str, *, mutant: Mutant | None = None, faults: Faults | None = None
    ) -> None:
        self.upstream = upstream
        self.mutant = mutant
        self.faults = faults or Faults()
        self._model = "model"  # the last that a message was answered for

    def runner(self) -> web.AppRunner:
        """The proxy, ready to be given an address; bodies pass through as they come."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self.handle)
        app.cleanup_ctx.append(self._keep_session)
        return web.AppRunner(app, auto_decompress=False, logger=logger, access_log=None)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass one request on, and its answer back."""
        try:
            asked = await self._asked(request)
        except ConnectionError:  # the client left
            return web.Response(status=400)
        if found := self.faults.status():
            return _failure(*found)
        if self.mutant and self.mutant.request:
            self.mutant.request(asked)
        asked.headers.pop("x-served-model", None)
        async with self._session.request(
            asked.method,
            self.upstream + asked.path,
            data=asked.body or None,
            headers=asked.headers,
            allow_redirects=False,
        ) as answer:
            if answer.content_type == "text/event-stream" and not _changes_streams(self.mutant):
                return await self._flow(request, answer)
            kept = _kept(answer.headers)
            return self._changed(asked, Answered(answer.status, kept, await answer.read()))

    async def _asked(self, request: web.Request) -> Asked:
        headers = _kept(request.headers) | {"x-served-model": self._model}
        headers.pop("expect", None)
        return Asked(request.method, request.raw_path, headers, await request.read())

    def _changed(self, asked: Asked, answered: Answered) -> web.Response:
        """The answer, with the mutant's one thing wrong."""
        if answered.json.get("type") == "message":
            self._model = answered.json["model"]
        mutant = self.mutant
        if mutant and answered.headers.get("content-type", "").startswith("text/event-stream"):
            if mutant.events:
                answered.body = _encode(mutant.events(asked, _events(answered.body)))
            if mutant.frames:
                answered.body = mutant.frames(answered.body)
        elif mutant and mutant.answer:
            mutant.answer(asked, answered)
        return web.Response(status=answered.status, headers=answered.headers, body=answered.body)

    async def _flow(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        """A stream, event by event, until a fault or the client ends it."""
        response = web.StreamResponse(status=answer.status, headers=_kept(answer.headers))
        with suppress(ConnectionError):  # the client left
            await response.prepare(request)
            await self._write(request, response, answer)
        return response

    async def _write(
        self, request: web.Request, response: web.StreamResponse, answer: aiohttp.ClientResponse
    ) -> None:
        number = 0
        async for frame in _frames(answer):
            number += 1
            if number == self.faults.drop_at and request.transport:
                request.transport.abort()
                break
            if number == self.faults.error_at:
                await response.write(_encode([_error("overloaded_error")]))
                break
            await asyncio.sleep(self.faults.slow_s)
            await response.write(frame)

    async def _keep_session(self, app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            yield


def _changes_streams(mutant: Mutant | None) -> bool:
    return mutant is not None and (mutant.events is not None or mutant.frames is not None)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """What is passed on, by name in lower case: not what is of one connection only."""
    lowered = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lowered.items() if name not in HOP_BY_HOP}


async def _frames(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The frames of a stream as they come, each with its blank line."""
    rest = b""
    async for piece in answer.content.iter_any():
        *whole, rest = (rest + piece).split(EVENT_END)
        for frame in whole:
            yield frame + EVENT_END
    if rest:
        yield rest


def _events(data: bytes) -> list[Event]:
    return [json.loads(frame.data) for frame in Decoder().push(data)]


def _encode(events: list[Event]) -> bytes:
    """Frames; half a character stays one, as an escape."""
    frames = [f"event: {event['type']}\ndata: {to_json(event)}\n\n" for event in events]
    return "".join(frames).encode("utf-8", "backslashreplace")


def _error(kind: str) -> Event:
    return {"type": "error", "error": {"type": kind, "message": "As asked: a fault."}}


def _failure(status: int, kind: str) -> web.Response:
    headers = {"request-id": "req_fault"} | ({"retry-after": "1"} if status != 500 else {})
    return web.json_response(
        _error(kind) | {"request_id": "req_fault"}, status=status, headers=headers
    )


@asynccontextmanager
async def in_front(proxy: Proxy, host: str, port: int) -> AsyncIterator[str]:
    """Listen for `proxy`; its base URL. Raises OSError where the address is taken."""
    runner = proxy.runner()
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
