"""A connection over its life: slow heads, long silence, many requests at once, half a close."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import cast

import pytest

from minimsg.config import ServerConfig
from minimsg.limits import LIMITS
from minimsg.protocol.sse import Decoder
from minimsg.server import connections

from .bystander import bystander
from .conftest import Start
from .raw import Answer, collect, connect, next_answer, post, read_answer, say
from .running import LONG, PLAIN, TAPES, Json, Running, ask, eventually
from .test_disconnect import ONE_AT_A_TIME, until

HEALTH = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can wait for."""
    limits = replace(LIMITS, header_timeout_s=0.3, idle_timeout_s=0.6)
    monkeypatch.setattr(connections, "LIMITS", limits)


def test_the_limits_are_those_that_keep_slow_clients_from_holding_connections() -> None:
    assert LIMITS.header_timeout_s == 10
    assert 60 < LIMITS.idle_timeout_s <= 75


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("before", [b"", HEALTH], ids=["first request", "later request"])
async def test_a_head_that_trickles_in_is_given_up_in_time(
    scripted: Running, before: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    started = time.monotonic()
    trickle = [bytes([byte]) for byte in b"POST /secret HTTP/1.1\r\n"]
    received = await say(scripted, before, *trickle, pause_s=0.05)
    assert time.monotonic() - started < 5
    answer = read_answer(received)
    if before:
        assert answer.status == 200
        answer = read_answer(answer.rest)
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert answer.rest == b""
    assert len([line for line in caplog.messages if answer.json["request_id"] in line]) == 1
    assert "secret" not in caplog.text


async def test_a_reply_may_take_longer_than_its_head(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LIMITS", replace(LIMITS, header_timeout_s=0.05))
    data = post(ask(LONG, max_tokens=600))
    started = time.monotonic()
    async with connect(scripted) as (reader, writer):
        writer.write(data[:20])
        await asyncio.sleep(0.01)
        writer.write(data[20:])
        answer = await next_answer(reader)
    assert answer.json["usage"]["output_tokens"] == 600
    assert time.monotonic() - started > 0.05


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("said", [b"", HEALTH], ids=["never used", "used once"])
async def test_an_idle_connection_is_closed_without_a_word(scripted: Running, said: bytes) -> None:
    received = await say(scripted, said)
    assert received == b"" or read_answer(received).rest == b""


@contextmanager
def descriptors(number: int) -> Iterator[None]:
    """As many open files as a test needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(number, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_500_idle_connections_keep_nobody_out(scripted: Running) -> None:
    with descriptors(2_000):
        async with bystander(scripted) as watched, AsyncExitStack() as idle:
            for _ in range(500):
                reader, writer = await idle.enter_async_context(connect(watched))
                writer.write(HEALTH)
                await next_answer(reader)
            answer, _ = await watched.post(ask(PLAIN))
            assert answer["content"] == [{"type": "text", "text": TAPES[PLAIN]}]


async def test_pipelined_requests_are_answered_one_by_one_in_their_order(
    scripted: Running,
) -> None:
    lengths = [1 + number % 7 for number in range(100)]
    requests = [post(ask(PLAIN, max_tokens=length)) for length in lengths]
    async with bystander(scripted) as watched, connect(watched) as (reader, writer):
        writer.write(b"".join(requests))
        received = await reader.read(100)  # and for a while no more
        most = 0
        for _ in range(50):
            most = max(most, watched.server.num_requests)
            await asyncio.sleep(0.002)
        assert most <= 2  # the bystander's and one of these
        while received.count(b'"output_tokens"') < 100:
            received += await reader.read(65_536)
    for length in lengths:
        answer = read_answer(received)
        assert answer.json["usage"]["output_tokens"] == length
        received = answer.rest
    assert received == b""


async def test_who_reads_no_reply_is_dropped(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    running = await start(config=ServerConfig(write_timeout_s=0.3))
    await running.post(ask(PLAIN))
    before = len(asyncio.all_tasks())
    with socket.socket() as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        host, port = running.url.removeprefix("http://").split(":")
        stalled.connect((host, int(port)))
        stalled.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        await eventually(lambda: len(asyncio.all_tasks()) > before)
        await eventually(lambda: len(asyncio.all_tasks()) <= before)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def half_close(running: Running, data: bytes) -> bytes:
    """What comes for `data` to a client that says at once that it will send no more."""
    received = bytearray()
    async with asyncio.timeout(20), connect(running) as (reader, writer):
        writer.write(data)
        writer.write_eof()
        await collect(reader, received)
    return bytes(received)


def events(answer: Answer) -> list[Json]:
    """The events of a streamed answer, which a client's decoder finds in it."""
    decoder = Decoder()
    frames = decoder.push(answer.body) + decoder.flush()
    return [cast("Json", frame.json()) for frame in frames]


def text(found: list[Json]) -> str:
    """What the events say."""
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    return "".join(str(delta["text"]) for delta in deltas if isinstance(delta, dict))


async def test_who_stops_sending_still_gets_the_stream_to_its_end(watched: Running) -> None:
    answer = read_answer(await half_close(watched, post(ask(LONG, max_tokens=600, stream=True))))
    found = events(answer)
    assert text(found) == TAPES[LONG][:600]
    assert found[-1] == {"type": "message_stop"}
    assert answer.rest == b""


async def test_who_stops_sending_still_gets_a_plain_reply(watched: Running) -> None:
    received = await half_close(watched, post(ask(LONG, max_tokens=600)))
    assert received.startswith(connections.INTERIM)  # which clients pass over
    answer = read_answer(received)
    assert answer.json["content"] == [{"type": "text", "text": TAPES[LONG][:600]}]
    assert answer.rest == b""


async def test_who_stops_sending_after_many_requests_gets_all_replies(watched: Running) -> None:
    received = await half_close(watched, post(ask(PLAIN, max_tokens=5)) * 40)
    for _ in range(40):
        answer = read_answer(received)
        assert answer.json["content"] == [{"type": "text", "text": TAPES[PLAIN][:5]}]
        received = answer.rest
    assert received == b""


async def test_a_stream_that_waits_goes_on_for_who_stopped_sending(start: Start) -> None:
    running = await start(engine=ONE_AT_A_TIME)
    async with connect(running) as (_, ahead):
        ahead.write(post(ask(LONG, stream=True)))
        await until(running, running_now=1)
        waiting = asyncio.create_task(half_close(running, post(ask(PLAIN, stream=True))))
        await until(running, running_now=1, waiting=1)
        await asyncio.sleep(0.2)  # fillers are written meanwhile
    answer = read_answer(await waiting)
    assert b"\n:\n\n" in answer.body
    assert text(events(answer)) == TAPES[PLAIN]


@pytest.mark.parametrize("stream", [False, True])
async def test_who_stops_sending_and_leaves_later_frees_the_pages(
    start: Start, stream: bool
) -> None:
    running = await start(engine=ONE_AT_A_TIME)
    async with connect(running) as (_, ahead):
        ahead.write(post(ask(LONG, stream=True)))
        await until(running, running_now=1)
        async with connect(running) as (_, writer):
            writer.write(post(ask(LONG, stream=stream)))
            writer.write_eof()
            await until(running, running_now=1, waiting=1)
            await asyncio.sleep(0.1)
        await eventually(lambda: not running.server.worker.stats().waiting, within_s=3)
    await running.until_free()


async def test_who_stops_sending_amid_a_request_has_left(watched: Running) -> None:
    data = post(ask(LONG))
    for cut in (10, data.index(b"{") + 1, len(data) - 1):
        assert await half_close(watched, data[:cut]) == b""


async def test_who_stops_sending_over_http_1_0_has_left(watched: Running) -> None:
    data = post(ask(LONG, stream=True)).replace(b"HTTP/1.1", b"HTTP/1.0")
    received = await half_close(watched, data)
    assert b"message_stop" not in received


async def test_who_stops_sending_is_told_the_end_at_once(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FIRST_PAUSE_S", 60.0)  # no second filler finds it idle
    received = await half_close(scripted, post(ask(LONG, max_tokens=600)))
    assert read_answer(received).json["usage"]["output_tokens"] == 600
