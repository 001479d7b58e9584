"""Many clients at once, some of whom leave: nobody is lost and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import random
from dataclasses import replace

import aiohttp
import psutil

from .conftest import Start
from .running import LONG, PLAIN, STOPS, TAPES, Json, Running, ask, eventually


async def converse(running: Running, chance: random.Random) -> str:
    """One client: reads its stream to the end, or leaves at a random event."""
    tape = chance.choice([PLAIN, STOPS, LONG])
    body: Json = ask(tape, stream=True, max_tokens=chance.randint(1, 400))
    leaves_at = chance.randint(0, 60) if chance.random() < 0.3 else None
    async with running.session.post(running.url + "/v1/messages", json=body) as response:
        assert response.status == 200
        num_lines = 0
        async for line in response.content:
            num_lines += 1
            if leaves_at is not None and num_lines > leaves_at:
                response.close()
                return "left"
            if b'"message_stop"' in line:
                return "finished"
    raise AssertionError("the stream ended without message_stop")


async def test_64_streams_of_which_a_third_leaves_free_everything(start: Start) -> None:
    running = await start()
    await converse(running, random.Random(0))
    process = psutil.Process()
    await settle(running)
    tasks, descriptors = len(asyncio.all_tasks()), process.num_fds()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as clients:
        crowd = replace(running, session=clients)
        ends = await asyncio.gather(*(converse(crowd, random.Random(seed)) for seed in range(64)))
    assert ends.count("finished") > 30
    assert ends.count("left") > 8
    await running.until_free()
    await settle(running)
    assert len(asyncio.all_tasks()) <= tasks
    assert process.num_fds() <= descriptors
    answer, _ = await running.post(ask(PLAIN))
    assert answer["content"] == [{"type": "text", "text": TAPES[PLAIN]}]


async def settle(running: Running) -> None:
    """Return once the server has noticed that its clients are gone."""
    await running.until_free()
    await eventually(lambda: running.server.num_requests == 0)
    await asyncio.sleep(0.2)
    gc.collect()
