"""How a server ends: by SIGTERM, twice, by Ctrl-C, by the death of its engine."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from minimsg.limits import LIMITS
from minimsg.protocol.sse import Decoder

from .running import LONG, PLAIN, ask, eventually

SCRIPT = Path(__file__).parent / "serve_folder.py"
ENOUGH_S = 60.0


@dataclass(frozen=True)
class Separate:
    """A server in its own process."""

    process: Process
    url: str
    session: aiohttp.ClientSession

    async def stream(self, max_tokens: int) -> list[Any]:
        """The events of a long stream, to whatever end it comes."""
        decoder, body = Decoder(), ask(LONG, stream=True, max_tokens=max_tokens)
        async with self.session.post(self.url + "/v1/messages", json=body) as response:
            assert response.status == 200
            return [frame.json() for frame in decoder.push(await response.read())]

    async def until_requests(self, count: int) -> None:
        """Return once `count` requests, and the one that asks, are being answered."""
        while True:
            async with self.session.get(self.url + "/health") as response:
                if (await response.json())["requests"] == count + 1:
                    return
            await asyncio.sleep(0.01)

    async def health(self) -> int:
        async with self.session.get(self.url + "/health") as answer:
            return answer.status

    async def statuses(self) -> list[int]:
        """Those of two probes, and then of a request."""
        answers = [
            await self.session.get(self.url + "/health"),
            await self.session.get(self.url + "/health/live"),
            await self.session.post(self.url + "/v1/messages", json=ask(PLAIN)),
        ]
        return [answer.status for answer in answers]

    async def exit_code(self) -> int:
        async with asyncio.timeout(ENOUGH_S):
            return await self.process.wait()


Launch = Callable[..., Awaitable[Separate]]


@pytest.fixture
async def launch(model_folder: Callable[[str], Path]) -> AsyncIterator[Launch]:
    """Starts a server: `await launch(drain_timeout_s, steps_until_death)`."""
    launched: list[Separate] = []

    async def start(*arguments: float) -> Separate:
        folder = model_folder("scripted")
        process = await asyncio.create_subprocess_exec(
            *map(str, (sys.executable, SCRIPT, folder, *arguments)), stdout=PIPE
        )
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        launched.append(Separate(process, url, aiohttp.ClientSession()))
        return launched[-1]

    yield start
    for server in launched:
        await server.session.close()
        if server.process.returncode is None:
            server.process.kill()
            await server.process.wait()


async def test_sigterm_lets_replies_finish_and_refuses_new_ones(launch: Launch) -> None:
    server = await launch(ENOUGH_S)
    streams = [asyncio.create_task(server.stream(max_tokens=200)) for _ in range(3)]
    await server.until_requests(3)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.1)
    async with server.session.post(server.url + "/v1/messages", json=ask(PLAIN)) as refused:
        assert refused.status == 529
        assert refused.headers["retry-after"] == "1"
    for events in await asyncio.gather(*streams):
        assert events[-1] == {"type": "message_stop"}
        assert events[-2]["usage"]["output_tokens"] == 200
    assert await server.exit_code() == 0


async def test_replies_that_take_longer_than_the_drain_get_an_error(launch: Launch) -> None:
    server = await launch(0.3)
    stream = asyncio.create_task(server.stream(max_tokens=4_000))
    plain = server.session.post(server.url + "/v1/messages", json=ask(LONG))
    answer = asyncio.create_task(plain.__aenter__())
    await server.until_requests(2)
    server.process.send_signal(signal.SIGTERM)
    last = (await stream)[-1]
    assert (last["type"], last["error"]["type"]) == ("error", "overloaded_error")
    assert (await answer).status == 529
    assert await server.exit_code() == 0


async def test_a_second_sigterm_ends_it_at_once(launch: Launch) -> None:
    server = await launch(ENOUGH_S)
    stream = asyncio.create_task(server.stream(max_tokens=4_000))
    await server.until_requests(1)
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.1)
    server.process.send_signal(signal.SIGTERM)
    assert (await stream)[-1]["type"] == "error"
    assert await server.exit_code() == 0
    assert time.monotonic() - started < 5


async def test_ctrl_c_is_130_and_ends_the_processes_that_prepare(launch: Launch) -> None:
    server = await launch(ENOUGH_S)
    big = ask(PLAIN, padding="x" * LIMITS.inline_body_bytes)
    async with server.session.post(server.url + "/v1/messages", json=big) as response:
        assert response.status == 200
    children = psutil.Process(server.process.pid).children()
    assert len(children) == 1
    server.process.send_signal(signal.SIGINT)
    assert await server.exit_code() == 130
    await eventually(lambda: not any(child.is_running() for child in children))


async def test_a_killed_server_leaves_no_process_behind(launch: Launch) -> None:
    server = await launch(ENOUGH_S)
    big = ask(PLAIN, padding="x" * LIMITS.inline_body_bytes)
    async with server.session.post(server.url + "/v1/messages", json=big) as response:
        assert response.status == 200
    children = psutil.Process(server.process.pid).children()
    server.process.kill()
    await server.exit_code()
    await eventually(lambda: not any(child.is_running() for child in children))


async def test_an_engine_that_fails_again_and_again_is_exit_code_70(launch: Launch) -> None:
    server = await launch(ENOUGH_S, 50)
    last = (await server.stream(max_tokens=4_000))[-1]
    assert (last["type"], last["error"]["type"]) == ("error", "api_error")
    assert await server.statuses() == [503, 503, 529]
    async with asyncio.timeout(ENOUGH_S):
        while await server.health() != 200:
            pass
    with suppress(aiohttp.ClientError):  # the post ends the engine, and that the server
        await server.statuses()
    assert await server.exit_code() == 70
