"""Workers with real threads, as the tests of this folder run and watch them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from minimsg.engine.engine import Engine
from minimsg.engine.restarts import Restarts
from minimsg.engine.token_stream import TokenStream
from minimsg.engine.types import GenerationRequest, SamplingParams
from minimsg.engine.worker import EngineWorker

GREEDY = SamplingParams(temperature=0)
Expected = Callable[[Sequence[int], int], list[int]]


def request(id: str, *, num_ids: int = 5, max_tokens: int = 8) -> GenerationRequest:
    return GenerationRequest(id, list(range(1, num_ids + 1)), max_tokens, sampling=GREEDY)


@asynccontextmanager
async def running(
    engine: Engine, max_queue: int = 512, restarts: Restarts | None = None
) -> AsyncIterator[EngineWorker]:
    """A worker that is started, and has stopped when the block ends."""
    worker = EngineWorker(engine, max_queue, restarts)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
        assert not worker.is_alive


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in 5 seconds"
        await asyncio.sleep(0.002)


async def ids_of(stream: TokenStream) -> list[int]:
    return [token.id async for token in stream]


def is_empty(worker: EngineWorker) -> bool:
    stats = worker.stats()
    return stats.used_pages == 0 and stats.running == stats.waiting == 0


class Gate:
    """Holds the engine in a step until it is opened."""

    def __init__(self, model: Any) -> None:
        self.is_open = threading.Event()
        self.is_reached = threading.Event()
        model.on_call = self._wait

    def _wait(self, inputs: object) -> None:
        self.is_reached.set()
        assert self.is_open.wait(10)

    async def reached(self) -> None:
        await until(self.is_reached.is_set)
