"""A full queue is the first thing that a request meets, and only what needs the engine meets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from minimsg.config import EngineConfig, ServerConfig

from .conftest import Start
from .running import LONG, PLAIN, Running, ask, eventually

ONE_AT_A_TIME = EngineConfig(dtype="float32", num_pages=1_024, threads=1, max_sequences=1)


@pytest.fixture
async def full(start: Start) -> AsyncIterator[Running]:
    """A server that runs one request while another waits: there is no room for a third."""
    running = await start("scripted", engine=ONE_AT_A_TIME, config=ServerConfig(max_queue=1))
    busy = [asyncio.create_task(running.post(ask(LONG))) for _ in range(2)]
    stats = running.server.worker.stats
    await eventually(lambda: (stats().running, stats().waiting) == (1, 1))  # both have arrived
    yield running
    for task in busy:
        task.cancel()


@pytest.mark.parametrize(
    "body",
    [b'{"model": "scripted"', b"[]", b'{"model": "nobody", "max_tokens": 0, "messages": 7}', b""],
)
async def test_a_request_that_is_wrong_is_told_of_the_queue_first(
    full: Running, body: bytes
) -> None:
    async with full.session.post(full.url + "/v1/messages", data=body) as response:
        assert response.status == 529
        assert int(response.headers["retry-after"]) > 0
        assert (await response.json())["error"]["type"] == "overloaded_error"


async def test_the_refusal_does_not_wait_for_the_body(full: Running) -> None:
    address = urlsplit(full.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n{"
    writer.write(head.encode())
    async with asyncio.timeout(5):  # a body may take 30 s
        assert (await reader.readline()).split()[1] == b"529"
    writer.close()
    await writer.wait_closed()


async def test_counting_goes_on(full: Running) -> None:
    answer, _ = await full.post(ask(PLAIN), "/v1/messages/count_tokens")
    assert isinstance(answer["input_tokens"], int)


async def test_there_is_room_once_one_has_left(full: Running) -> None:
    body = ask(PLAIN, max_tokens=3)
    await full.post(body, status=529)
    full.server.worker.max_open += 1
    waiting = asyncio.create_task(full.post(body))
    await eventually(lambda: full.server.worker.stats().waiting == 2)
    waiting.cancel()
    await eventually(lambda: full.server.worker.stats().waiting == 1)
