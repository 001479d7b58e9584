"""Ten thousand requests, three of ten aborted at any point: nothing is left of them.

With `pytest -m soak` only. MINIMSG_SOAK_REQUESTS makes it shorter.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
from dataclasses import replace
from typing import Final

import aiohttp
import psutil
import pytest

from .bystander import Held
from .conftest import ENGINE, Start
from .running import LONG, PLAIN, Json, Running, ask

NUM_REQUESTS: Final = int(os.environ.get("MINIMSG_SOAK_REQUESTS", "10000"))
NUM_CLIENTS: Final = 8
WARM_UP: Final = 0.1  # of the requests: until then the process may grow
MARK: Final[Json] = {"type": "ephemeral"}


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_nothing_is_left_of_requests_however_they_ended(start: Start) -> None:
    running = await start(engine=replace(ENGINE, num_pages=600, max_sequences=4))
    await running.post(ask(PLAIN))
    before, num_threads = await Held.now(running), threading.active_count()
    await send(running, int(NUM_REQUESTS * WARM_UP))
    gc.collect()
    warm = psutil.Process().memory_info().rss
    await send(running, NUM_REQUESTS - int(NUM_REQUESTS * WARM_UP))
    await before.check(running)
    assert threading.active_count() <= num_threads
    running.server.worker.engine.scheduler.check()
    assert psutil.Process().memory_info().rss <= warm * 1.03


async def send(running: Running, number: int) -> None:
    """So many requests, some at once, each of its own kind."""
    numbers = random.Random(number)
    coming = iter(range(number))

    async def client() -> None:
        async with aiohttp.ClientSession() as session:
            for _ in coming:
                await one(replace(running, session=session), numbers)

    await asyncio.gather(*(client() for _ in range(NUM_CLIENTS)))


async def one(running: Running, numbers: random.Random) -> None:
    """A request that is read to its end, or left: queued, in its prompt, or amid its reply."""
    is_left = numbers.random() < 0.3
    system = f"Be {numbers.randint(1, 30)} times as brief. " * numbers.randint(1, 40)
    tape = LONG if is_left else PLAIN
    body = ask(tape, system=system, cache_control=MARK, stream=numbers.random() < 0.7)
    try:
        async with asyncio.timeout(numbers.choice((0.0, 0.003, 0.03, 0.2)) if is_left else None):
            async with running.session.post(running.url + "/v1/messages", json=body) as response:
                assert response.status == 200, await response.text()
                await response.read()
    except (TimeoutError, aiohttp.ClientError):
        assert is_left
