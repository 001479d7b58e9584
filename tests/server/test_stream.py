"""An open stream: its signs of life, its readers that do not read, its engine that fails."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any, cast

import pytest

from minimsg.config import ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.protocol.grammar import check
from minimsg.protocol.sse import Decoder

from .conftest import ENGINE, Start
from .running import INJECTION, LONG, PLAIN, TAPES, Json, Running, ask
from .test_disconnect import ONE_AT_A_TIME, connect, until

QUICK_PINGS = ServerConfig(ping_interval_s=0.05)


async def events_until(
    running: Running, body: Json, done: Callable[[list[Json]], bool]
) -> list[Json]:
    """The events of a stream until `done` or its end."""
    decoder, events = Decoder(), list[Json]()
    async with (
        asyncio.timeout(20),
        running.session.post(
            running.url + "/v1/messages", json={**body, "stream": True}
        ) as response,
    ):
        async for data in response.content.iter_any():
            events += [cast("Json", frame.json()) for frame in decoder.push(data)]
            if done(events):
                response.close()
                break
    return events


async def test_a_queued_stream_starts_at_once_and_is_kept_alive_by_pings(start: Start) -> None:
    running = await start(engine=ONE_AT_A_TIME, config=QUICK_PINGS)
    first = await connect(running, ask(LONG, stream=True))
    await until(running, running_now=1)
    events = await events_until(running, ask(PLAIN), lambda events: len(events) >= 4)
    assert [event["type"] for event in events[:4]] == ["message_start", "ping", "ping", "ping"]
    first.close()
    await running.until_free()


async def test_a_dead_engine_gets_no_pings(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await start(engine=ONE_AT_A_TIME, config=QUICK_PINGS)
    first = await connect(running, ask(LONG, stream=True))
    await until(running, running_now=1)
    monkeypatch.setattr(EngineWorker, "heartbeat_age_s", 31.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await events_until(running, ask(PLAIN), lambda events: len(events) >= 2)
    first.close()
    await running.until_free()


async def test_pings_never_break_the_order_of_events(start: Start) -> None:
    running = await start(config=ServerConfig(ping_interval_s=0.001))
    events = await running.stream(ask(LONG, max_tokens=300))
    assert check(events) is None
    assert events[-1] == {"type": "message_stop"}


async def test_a_client_that_does_not_read_is_dropped_and_its_pages_freed(start: Start) -> None:
    running = await start(config=ServerConfig(write_timeout_s=0.3))
    stalled = send_and_stall(running, ask(LONG, stream=True))
    await until(running, running_now=1)
    answer, _ = await running.post(ask(PLAIN))  # it stops nobody else
    assert answer["stop_reason"] == "end_turn"
    await running.until_free()
    assert running.server.worker.stats().steps < 3_500  # of 4,000 that the reply would take
    stalled.close()


def send_and_stall(running: Running, body: Json) -> socket.socket:
    """Send a request from a client with little room, and read nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    host, port = running.url.removeprefix("http://").split(":")
    connection.connect((host, int(port)))
    data = json.dumps(body).encode()
    head = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return connection


class Broken:
    """A model's forward that works `times` times and then fails."""

    def __init__(self, works: Any, times: int) -> None:
        self.works, self.times = works, times

    def __call__(self, *args: Any) -> Any:
        self.times -= 1
        if self.times < 0:
            raise RuntimeError("the matrix is on fire")
        return self.works(*args)


def break_engine(monkeypatch: pytest.MonkeyPatch, running: Running, after_steps: int) -> None:
    runner = running.server.worker.engine.runner
    monkeypatch.setattr(runner, "run", Broken(runner.run, after_steps))


async def test_an_engine_failure_in_a_stream_is_an_error_event_and_the_end(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_engine(monkeypatch, scripted, after_steps=4)
    events = cast("list[Any]", await scripted.stream(ask(LONG)))
    assert [event["type"] for event in events[:2]] == ["message_start", "content_block_start"]
    *_, last = events
    assert last["type"] == "error"
    assert last["error"]["type"] == "api_error"
    assert "the matrix is on fire" in last["error"]["message"]
    assert last["request_id"].startswith("req_01")


async def test_an_engine_failure_in_a_plain_reply_is_500_and_the_next_request_is_served(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_engine(patch, scripted, after_steps=4)
        answer, _ = await scripted.post(ask(LONG), status=500)
    assert cast("Any", answer["error"])["type"] == "api_error"
    await scripted.post(ask(PLAIN))
    await scripted.until_free()


async def test_a_full_queue_is_529_with_the_time_to_come_back(start: Start) -> None:
    running = await start(engine=ONE_AT_A_TIME, config=ServerConfig(max_queue=1))
    writers = [await connect(running, ask(LONG, stream=True)) for _ in range(2)]
    await until(running, running_now=1, waiting=1)
    for stream in (False, True):
        answer, response = await running.post(ask(PLAIN, stream=stream), status=529)
        assert cast("Any", answer["error"])["type"] == "overloaded_error"
        assert int(response.headers["retry-after"]) >= 1
    for writer in writers:
        writer.close()
    await running.until_free()


async def test_a_server_that_ends_tells_its_streams(start: Start) -> None:
    running = await start(engine=ENGINE)
    reading = asyncio.create_task(running.stream(ask(LONG)))
    await until(running, running_now=1)
    running.server.is_draining = True
    await running.post(ask(PLAIN), status=529)
    await asyncio.to_thread(running.server.worker.stop)
    last = cast("Any", (await reading)[-1])
    assert (last["type"], last["error"]["type"]) == ("error", "overloaded_error")


async def test_text_that_looks_like_an_event_stays_text(scripted: Running) -> None:
    events = cast("list[Any]", await scripted.stream(ask(INJECTION)))
    text = "".join(e["delta"]["text"] for e in events if e["type"] == "content_block_delta")
    assert text == TAPES[INJECTION]
    assert json.dumps(events).count('"message_stop"') == 1
