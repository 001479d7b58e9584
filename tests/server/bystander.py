"""A second client that must notice nothing, and a server that must have lost nothing.

    async with bystander(running) as watched:
        await watched.post(...)  # whatever a client may do to a server

While the block runs, somebody else reads one streamed reply after the other; each must
hold the very text that the scripted model has for it, without a long silence. After the
block, pages, descriptors and tasks must be what they were. Use the server that the block
is given: its session is closed before descriptors are counted.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import cast

import aiohttp
import psutil

from minimsg.protocol.sse import Decoder

from .running import LONG, TAPES, Json, Running, ask, eventually, preparing

REPLY_TOKENS = 100  # one byte each
WORST_GAP_S = 2.0  # what the machine's other work may cost is included
PATIENCE_S = 5.0  # until everything must be given back
PIPES_OF_A_PROCESS = 3  # that prepares big bodies, and stays


@asynccontextmanager
async def bystander(running: Running, key: str = "any") -> AsyncIterator[Running]:
    """Somebody streams while the block runs, with `key` if the server asks for one.

    AssertionError if the block disturbed anything.
    """
    async with running.session.get(running.url + "/health/live"):
        pass  # so that the one connection this session keeps is there before the count
    before = await Held.now(running)
    with_key = aiohttp.ClientSession(headers={"x-api-key": key})
    async with aiohttp.ClientSession() as own, with_key as theirs:
        reader = Reader(replace(running, session=theirs))
        reading = asyncio.create_task(reader.read_on())
        try:
            await eventually(lambda: reader.num_pieces > 0 or reading.done())
            yield replace(running, session=own)
        finally:
            reader.is_leaving = True
            await asyncio.wait({reading})
        reading.result()
    await before.check(running)


class Reader:
    """Reads streamed replies until it is told to leave, and then the last one to its end."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.is_leaving = False
        self.num_pieces = 0

    async def read_on(self) -> None:
        """AssertionError for a wrong text or a long gap."""
        while True:
            text, worst_gap_s = await self._read_one()
            assert text == TAPES[LONG][:REPLY_TOKENS]
            assert worst_gap_s < WORST_GAP_S
            if self.is_leaving:
                return

    async def _read_one(self) -> tuple[str, float]:
        body = ask(LONG, max_tokens=REPLY_TOKENS, stream=True)
        decoder, text, latest, worst_gap_s = Decoder(), "", time.monotonic(), 0.0
        async with self._running.session.post(
            self._running.url + "/v1/messages", json=body
        ) as response:
            assert response.status == 200
            async for data in response.content.iter_any():
                now = time.monotonic()
                latest, worst_gap_s = now, max(worst_gap_s, now - latest)
                text += "".join(_text(cast("Json", frame.json())) for frame in decoder.push(data))
                self.num_pieces += 1
        return text, worst_gap_s


def _text(event: Json) -> str:
    delta = event.get("delta")
    return str(delta.get("text", "")) if isinstance(delta, dict) else ""


@dataclass(frozen=True)
class Held:
    """What a server holds while nobody asks it anything."""

    num_tasks: int
    num_descriptors: int
    num_processes: int

    @classmethod
    async def now(cls, running: Running) -> Held:
        """What is held once every reply has ended."""
        await running.until_free()
        await eventually(lambda: running.server.num_requests == 0)
        return cls(len(asyncio.all_tasks()), psutil.Process().num_fds(), len(preparing()))

    async def check(self, running: Running) -> None:
        """Return once no more is held than this. AssertionError."""
        gc.collect()
        await running.until_free()
        try:
            await eventually(lambda: not self._excess(), PATIENCE_S)
        except TimeoutError:
            raise AssertionError(f"left behind: {self._excess()}") from None

    def _excess(self) -> list[str]:
        pipes = PIPES_OF_A_PROCESS * (len(preparing()) - self.num_processes)
        descriptors = psutil.Process().num_fds() - self.num_descriptors - max(0, pipes)
        tasks = len(asyncio.all_tasks()) - self.num_tasks
        named = {"tasks": tasks, "descriptors": descriptors}
        return [f"{number} {name}" for name, number in named.items() if number > 0]
