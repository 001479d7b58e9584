"""A client that leaves, at any moment and in any mode, leaves nothing behind."""

from __future__ import annotations

import asyncio
import json

import pytest

from minimsg.config import EngineConfig

from .conftest import ENGINE, Start
from .running import LONG, PLAIN, Json, Running, ask, eventually, preparing

# Steps of 16 tokens: a prompt of 8,000 is read in 500 of them.
SLOW_PREFILL = EngineConfig(dtype="float32", num_pages=1_024, threads=1, max_step_tokens=16)
ONE_AT_A_TIME = EngineConfig(dtype="float32", num_pages=1_024, threads=1, max_sequences=1)


async def connect(running: Running, body: Json) -> asyncio.StreamWriter:
    """Send `body` on a connection of its own and read nothing."""
    host, port = running.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    data = json.dumps(body).encode()
    head = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    await writer.drain()
    return writer


async def until(running: Running, *, running_now: int = 0, waiting: int = 0) -> None:
    """Return once so many sequences run and wait."""

    def are_there() -> bool:
        stats = running.server.worker.stats()
        return stats.running >= running_now and stats.waiting >= waiting

    await eventually(are_there)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as an error."""
    return [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]


def reset(writer: asyncio.StreamWriter) -> None:
    """Leave without a goodbye: RST instead of FIN."""
    writer.transport.abort()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("leave", [asyncio.StreamWriter.close, reset], ids=["FIN", "RST"])
async def test_leaving_while_tokens_come_frees_the_pages(
    start: Start, stream: bool, leave: object, caplog: pytest.LogCaptureFixture
) -> None:
    running = await start(engine=ENGINE)
    assert callable(leave)
    for _ in range(5):
        writer = await connect(running, ask(LONG, stream=stream))
        await until(running, running_now=1)
        leave(writer)
        await running.until_free()
    assert running.server.worker.stats().steps < 5 * 4_000  # none was computed to its end
    assert errors(caplog) == []


@pytest.mark.parametrize("stream", [False, True])
async def test_leaving_while_the_prompt_is_read_frees_the_pages(start: Start, stream: bool) -> None:
    running = await start(engine=SLOW_PREFILL)
    body = ask(PLAIN, stream=stream, messages=[{"role": "user", "content": "x" * 8_000}])
    writer = await connect(running, body)
    await until(running, running_now=1)
    writer.close()
    await running.until_free()
    assert running.server.worker.stats().steps < 400


@pytest.mark.parametrize("stream", [False, True])
async def test_leaving_the_queue_frees_the_place(start: Start, stream: bool) -> None:
    running = await start(engine=ONE_AT_A_TIME)
    first = await connect(running, ask(LONG, stream=True))
    await until(running, running_now=1)
    second = await connect(running, ask(LONG, stream=stream))
    await until(running, running_now=1, waiting=1)
    second.close()
    await eventually(lambda: not running.server.worker.stats().waiting)
    first.close()
    await running.until_free()


async def test_leaving_after_the_last_event_is_no_error(
    scripted: Running, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        async with scripted.session.post(
            scripted.url + "/v1/messages", json=ask(PLAIN, stream=True)
        ) as response:
            async for line in response.content:
                if b"message_stop" in line:
                    break
            response.close()
    await scripted.until_free()
    assert errors(caplog) == []


async def test_a_neighbour_does_not_notice(scripted: Running) -> None:
    alone, _ = await scripted.post(ask(LONG, max_tokens=500))
    neighbour = asyncio.create_task(scripted.post(ask(LONG, max_tokens=500)))
    for _ in range(5):
        writer = await connect(scripted, ask(LONG, stream=True))
        await until(scripted, running_now=2)
        writer.transport.abort()
    answer, _ = await neighbour
    assert answer["content"] == alone["content"]
    await scripted.until_free()


async def test_leaving_while_a_big_body_is_prepared_ends_its_process(scripted: Running) -> None:
    big = ask(PLAIN, messages=[{"role": "user", "content": "words and " * 600_000}])
    writer = await connect(scripted, big)
    await eventually(lambda: bool(preparing()))
    writer.close()
    await eventually(lambda: not preparing())
    await scripted.post(ask(PLAIN))
