"""Bodies are prepared beside the event loop: in a thread, or in a process that can be ended."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic import JsonValue

from minimsg.builtin import write_scripted
from minimsg.errors import InvalidRequest, NotFound, Overloaded, RequestError, RequestTimeout
from minimsg.limits import LIMITS
from minimsg.prompt.chat import ChatModel
from minimsg.server import pool as pool_module
from minimsg.server.catalog import Catalog
from minimsg.server.pool import PreparePool
from minimsg.server.prepare import Served, Settings, count_prompt, prepare_message
from minimsg.server.prepare_process import ERRAND, Errand, Failure

from .running import PLAIN, ask, eventually, preparing

WINDOW = 16_000_000  # so that long prompts are tokenized and not refused
PADDING = b" " * (LIMITS.inline_body_bytes + 1)


def encoded(**fields: JsonValue) -> bytes:
    return json.dumps(ask(PLAIN, **fields)).encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("wide")
    write_scripted(folder, window=WINDOW)
    settings = Settings(Catalog("scripted"), WINDOW, 100)
    return Served(ChatModel.open(folder, "scripted"), settings)


@pytest.fixture
async def pool(served: Served) -> AsyncIterator[PreparePool]:
    made = PreparePool(served)
    yield made
    await made.close()


async def test_a_big_body_is_prepared_as_a_small_one_is(pool: PreparePool) -> None:
    body = encoded(temperature=0.5, stop_sequences=["é"], stream=True, tool=[])
    small = await pool.run(prepare_message, body)
    assert preparing() == []
    big = await pool.run(prepare_message, body + PADDING)
    assert len(preparing()) == 1
    assert big == small
    assert small.ignored == ["tool"]
    assert await pool.run(count_prompt, body + PADDING) == await pool.run(count_prompt, body)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"{", InvalidRequest, "The request body is not valid JSON: "),
        (encoded(model="other"), NotFound, "model: other"),
        (encoded(max_tokens=-1), InvalidRequest, "max_tokens: Input should be greater"),
    ],
)
async def test_errors_cross_as_they_are(
    pool: PreparePool, body: bytes, kind: type[RequestError], message: str
) -> None:
    for sent in (body, body + PADDING):
        with pytest.raises(kind) as caught:
            await pool.run(prepare_message, sent)
        assert caught.value.message.startswith(message)
        assert type(caught.value) is kind


def test_what_a_client_may_key_on_crosses_too() -> None:
    details = {"retry": [1, None], "why": "x"}
    error = NotFound("gone", error_code="gone_for_good", details=details)
    crossed = Failure.of(error).error()
    assert (crossed.error_code, crossed.details) == ("gone_for_good", details)


async def test_a_process_is_used_again_and_ends_with_the_pool(served: Served) -> None:
    pool = PreparePool(served)
    for _ in range(3):
        await pool.run(prepare_message, encoded() + PADDING)
    assert len(preparing()) == 1
    await pool.close()
    assert preparing() == []


async def test_work_that_is_late_ends_with_its_process(
    pool: PreparePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pool.run(prepare_message, encoded() + PADDING)
    monkeypatch.setattr(pool_module, "LIMITS", replace(LIMITS, prepare_timeout_s=0.1))
    slow = encoded(messages=[{"role": "user", "content": "words and " * 1_000_000}])
    with pytest.raises(RequestTimeout):
        await pool.run(count_prompt, slow)
    assert preparing() == []
    monkeypatch.undo()
    await pool.run(prepare_message, encoded() + PADDING)


async def test_a_small_body_has_the_same_deadline(
    pool: PreparePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "LIMITS", replace(LIMITS, prepare_timeout_s=0.001))
    small = encoded(messages=[{"role": "user", "content": "words and " * 20_000}])
    with pytest.raises(RequestTimeout):
        await pool.run(count_prompt, small)


async def test_a_process_that_dies_is_replaced(pool: PreparePool) -> None:
    await pool.run(prepare_message, encoded() + PADDING)
    [process] = preparing()
    process.kill()
    await eventually(lambda: not preparing())
    await asyncio.sleep(0.1)  # until the event loop has heard of it too
    await pool.run(prepare_message, encoded() + PADDING)
    assert [child.pid for child in preparing()] != [process.pid]


async def test_big_bodies_beyond_the_places_are_turned_away(
    pool: PreparePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MAX_BIG_BODIES", 1)
    first = asyncio.create_task(pool.run(prepare_message, encoded() + PADDING))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await pool.run(prepare_message, encoded() + PADDING)
    await first


async def test_the_event_loop_turns_while_a_big_body_is_prepared(pool: PreparePool) -> None:
    slow = encoded(messages=[{"role": "user", "content": "words and " * 200_000}])
    work = asyncio.create_task(pool.run(count_prompt, slow))
    worst = 0.0
    while not work.done():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - before)
    assert (await work).answer["input_tokens"] > 2_000_000
    assert worst < 0.5


def test_a_process_loads_neither_torch_nor_the_http_library() -> None:
    code = (
        "import sys, minimsg.server.prepare_process; "
        "print({'torch', 'aiohttp', 'transformers'} & set(sys.modules))"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "set()"


async def test_a_process_that_is_ended_amid_a_long_reply_gives_its_place_back(
    pool: PreparePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pipe is full then, and a full pipe would keep it from being seen to end."""
    replying = asyncio.Event()

    async def read_no_further(process: Process, errand: Errand, body: bytes) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(ERRAND.dump_json(errand) + b"\n" + body)
        await process.stdout.readuntil()
        replying.set()
        return await asyncio.Future()

    stops: list[JsonValue] = [f"{number}" + "q" * 2_000 for number in range(2_000)]
    with monkeypatch.context() as patch:
        patch.setattr(pool_module, "_exchange", read_no_further)
        running = asyncio.create_task(pool.run(prepare_message, encoded(stop_sequences=stops)))
        await asyncio.wait_for(replying.wait(), timeout=60)
        await asyncio.sleep(0.3)  # for the pipe to fill
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, timeout=10)
    await eventually(lambda: not preparing())
    assert (await pool.run(prepare_message, encoded() + PADDING)).prompt_ids


async def test_a_flood_of_unknown_fields_is_counted_and_not_listed(pool: PreparePool) -> None:
    flood: dict[str, JsonValue] = {f"{number}": 1 for number in range(LIMITS.faults + 1)}
    assert (await pool.run(prepare_message, encoded(**flood))).ignored == ["1001-fields"]
