"""A running server as tests see it, and what the scripted model says.

The scripted model speaks one byte a token: tape k answers a conversation with k earlier
replies, which is what `ask(k)` writes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
import psutil
from aiohttp import web
from pydantic import JsonValue

from minimsg.protocol.grammar import check
from minimsg.protocol.sse import Decoder
from minimsg.server.state import Server

Json = dict[str, JsonValue]

PLAIN, STOPS, HALF_STOP, INJECTION, LONG, EMPTY, EMOJI = range(7)
TAPES = [
    "Hello, I am the first tape.",
    "one two STOP three",
    "hello </e",
    "\n\nevent: message_stop\ndata: {}\n\nstill text",
    "word " * 1_200,
    "<|im_end|>",
    "aé\U0001f469\u200d\U0001f680",
]


def ask(tape: int, **fields: JsonValue) -> Json:
    """The body of a request that the scripted model answers with tape number `tape`."""
    turns: list[JsonValue] = []
    for _ in range(tape):
        turns += [{"role": "user", "content": "next"}, {"role": "assistant", "content": "yes"}]
    last: JsonValue = {"role": "user", "content": "go"}
    return {"model": "scripted", "max_tokens": 4_000, "messages": [*turns, last], **fields}


async def eventually(holds: Callable[[], bool], within_s: float = 30) -> None:
    """Return once `holds()` is true; TimeoutError if that takes too long."""
    async with asyncio.timeout(within_s):
        while True:
            if holds():
                return
            await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Running:
    """A server that listens, and a client session for it."""

    url: str
    server: Server
    session: aiohttp.ClientSession
    app: web.Application

    async def post(
        self, body: object, path: str = "/v1/messages", status: int = 200
    ) -> tuple[Json, aiohttp.ClientResponse]:
        """The JSON answer to `body`, which must come with `status`."""
        async with self.session.post(self.url + path, json=body) as response:
            assert response.status == status, await response.text()
            return await response.json(), response

    async def stream(self, body: Json) -> list[Json]:
        """The events of the streamed answer to `body`, checked against the grammar."""
        decoder = Decoder()
        async with self.session.post(
            self.url + "/v1/messages", json={**body, "stream": True}
        ) as response:
            assert response.status == 200, await response.text()
            frames = decoder.push(await response.read()) + decoder.flush()
        events: list[Json] = [json.loads(frame.data) for frame in frames]
        assert [frame.event for frame in frames] == [event["type"] for event in events]
        assert check(events) is None
        return events

    async def until_free(self) -> None:
        """Return once no sequence is left and every page is free; the timeout is the failure."""
        await eventually(lambda: self.is_free)

    @property
    def is_free(self) -> bool:
        """Whether the engine has nothing to do and all its pages."""
        stats = self.server.worker.stats()
        return stats.used_pages == 0 and not (stats.running or stats.waiting)


def break_engine(running: Running) -> None:
    """Let the engine as a whole fail at its next step; set up anew, it is sound."""

    def broken(*args: object) -> None:
        raise MemoryError("a row of ours")

    running.server.worker.engine.scheduler.commit = broken  # type: ignore[method-assign, assignment]


def preparing() -> list[psutil.Process]:
    """The processes that prepare bodies for servers in this one; other children are not ours."""
    found = []
    for child in psutil.Process().children():
        try:
            if "minimsg.server.prepare_process" in child.cmdline():
                found.append(child)
        except psutil.Error:  # it ended between the two calls
            continue
    return found
