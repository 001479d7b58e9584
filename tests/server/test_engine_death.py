"""The engine fails as a whole under a server: what clients and probes see, until it works again."""

from __future__ import annotations

import asyncio
import json
import time

from pydantic import JsonValue

from minimsg.protocol.sse import Decoder

from .running import LONG, PLAIN, TAPES, Json, Running, ask, break_engine, eventually

PAUSE_S = 1.0  # the first


async def status(running: Running, path: str) -> int:
    async with running.session.get(running.url + path) as response:
        return response.status


async def last_event(running: Running) -> Json:
    body = ask(LONG, stream=True)
    async with running.session.post(running.url + "/v1/messages", json=body) as response:
        assert response.status == 200
        frames = Decoder().push(await response.read())
    event: Json = json.loads(frames[-1].data)
    assert frames[-1].event == event["type"]
    return event


def error_of(answer: Json) -> JsonValue:
    assert answer["type"] == "error"
    error = answer["error"]
    assert isinstance(error, dict)
    return error["type"]


async def test_every_open_reply_ends_in_an_error_and_the_server_comes_back(
    scripted: Running,
) -> None:
    worker = scripted.server.worker
    streams = [asyncio.create_task(last_event(scripted)) for _ in range(3)]
    plain = [asyncio.create_task(scripted.post(ask(LONG), status=500)) for _ in range(2)]
    await eventually(lambda: worker.stats().running == 5)
    break_engine(scripted)
    for event in await asyncio.gather(*streams):
        assert error_of(event) == "api_error"
    failed = time.monotonic()
    paths = ("/health", "/health/live", "/health/ready")
    assert [await status(scripted, path) for path in paths] == [503] * 3
    assert time.monotonic() - failed < PAUSE_S  # within a second
    refused, response = await scripted.post(ask(PLAIN), status=529)
    assert error_of(refused) == "overloaded_error"
    assert int(response.headers["retry-after"]) == 1
    for answer, _ in await asyncio.gather(*plain):
        assert error_of(answer) == "api_error"

    await eventually(lambda: scripted.server.is_ready)
    assert time.monotonic() - failed > PAUSE_S / 2
    assert [await status(scripted, path) for path in paths] == [200] * 3
    message, _ = await scripted.post(ask(PLAIN))
    assert message["content"] == [{"type": "text", "text": TAPES[PLAIN]}]
    await scripted.until_free()
    worker.engine.scheduler.check()


async def test_clients_in_a_closed_loop_lose_what_was_open_and_nothing_else(
    scripted: Running,
) -> None:
    """As an SDK does, each waits as `retry-after` says and asks again."""

    async def ask_until_answered(number: int) -> list[int]:
        seen: list[int] = []
        while 200 not in seen:
            body = ask(PLAIN, max_tokens=20 + number)
            async with scripted.session.post(scripted.url + "/v1/messages", json=body) as response:
                seen.append(response.status)
                await response.read()
                await asyncio.sleep(float(response.headers.get("retry-after", 0)))
        return seen

    break_engine(scripted)
    seen = await asyncio.gather(*(ask_until_answered(number) for number in range(8)))
    assert all(set(statuses) <= {200, 500, 529} for statuses in seen)
    assert all(statuses.count(500) <= 1 for statuses in seen)
    assert any(500 in statuses for statuses in seen)
    await scripted.until_free()


async def test_a_client_that_leaves_in_the_pause_leaves_nothing_behind(scripted: Running) -> None:
    stream = asyncio.create_task(last_event(scripted))
    await eventually(lambda: scripted.server.worker.stats().running == 1)
    break_engine(scripted)
    await eventually(lambda: not scripted.server.worker.is_alive)
    stream.cancel()
    await eventually(lambda: scripted.server.is_ready)
    await scripted.until_free()
    assert (await scripted.stream(ask(PLAIN)))[-1] == {"type": "message_stop"}
