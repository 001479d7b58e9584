"""A server that is killed, or whose disk is full, loses no result and says none twice."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from minimsg.store.records import MAX_DEATHS

from .batching import ROUTE
from .test_files import form

SCRIPT = Path(__file__).parent / "serve_store.py"
BODY: Any = {"model": "tiny", "messages": [{"role": "user", "content": "go"}]}
MANY = [pytest.mark.soak, pytest.mark.timeout(3_600)]


@asynccontextmanager
async def serving(folder: Path, data_dir: Path, *more: str) -> AsyncIterator[tuple[Process, str]]:
    """A server's process and its URL; killed at the end, whatever it does."""
    command = [sys.executable, str(SCRIPT), str(folder), str(data_dir), *more]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=DEVNULL)
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        assert url, "it did not start"
        yield process, url
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def until_done(session: aiohttp.ClientSession, url: str) -> Any:
    """The batch, once it has ended."""
    while True:
        async with session.get(url) as response:
            batch = await response.json()
        if batch["processing_status"] == "ended":
            return batch
        await asyncio.sleep(0.05)


async def is_done_within(session: aiohttp.ClientSession, url: str, seconds: float) -> bool:
    """Whether the batch ends before so many seconds have passed."""
    try:
        async with asyncio.timeout(seconds):
            await until_done(session, url)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(("num_items", "num_kills"), [(60, 2), pytest.param(500, 50, marks=MANY)])
async def test_each_result_is_there_once_however_often_the_server_is_killed(
    model_folder: Callable[[str], Path], tmp_path: Path, num_items: int, num_kills: int
) -> None:
    folder, moments, num_cut = model_folder("tiny"), random.Random(1), 0
    items = [
        {"custom_id": f"r{number}", "params": BODY | {"max_tokens": 1 + number % 30}}
        for number in range(num_items)
    ]
    path = ""
    async with aiohttp.ClientSession() as session:
        for _ in range(num_kills):
            async with serving(folder, tmp_path) as (_, url):
                path = path or await create(session, url, items)
                seconds = moments.uniform(0.05, 0.5)
                num_cut += not await is_done_within(session, url + path, seconds)
        async with serving(folder, tmp_path) as (_, url):
            batch, lines = await outcome(session, url + path)
    assert num_cut > 0, "no kill came before the end"
    assert [line["custom_id"] for line in lines] == [item["custom_id"] for item in items]
    for line, item in zip(lines, items, strict=True):
        assert line["result"]["type"] == "succeeded"
        usage = line["result"]["message"]["usage"]
        assert 0 < usage["output_tokens"] <= item["params"]["max_tokens"]
    counts = {"processing": 0, "succeeded": num_items, "errored": 0, "canceled": 0, "expired": 0}
    assert batch["request_counts"] == counts


async def outcome(session: aiohttp.ClientSession, url: str) -> tuple[Any, list[Any]]:
    """The batch once it has ended, and the lines of its results."""
    batch = await until_done(session, url)
    async with session.get(f"{url}/results") as response:
        return batch, [json.loads(line) for line in (await response.text()).splitlines()]


@pytest.mark.soak
async def test_a_request_that_kills_every_server_is_no_others_concern(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, path, num_deaths = model_folder("tiny"), "", 0
    items = [
        {"custom_id": f"r{number}", "params": BODY | {"max_tokens": 1 + number}}
        for number in range(12)
    ]
    async with aiohttp.ClientSession() as session:
        while True:
            async with serving(folder, tmp_path, "6") as (process, url):
                path = path or await create(session, url, items)
                try:
                    _, lines = await outcome(session, url + path)
                    break
                except aiohttp.ClientError:
                    assert await process.wait() == 9
                    num_deaths += 1
    assert num_deaths == MAX_DEATHS
    kinds = {line["custom_id"]: line["result"]["type"] for line in lines}
    assert kinds == {each["custom_id"]: "succeeded" for each in items} | {"r5": "errored"}


async def test_a_running_server_waits_on_a_full_disk_and_loses_nothing(
    model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    items = [{"custom_id": f"r{n}", "params": BODY | {"max_tokens": 20}} for n in range(60)]
    async with (
        aiohttp.ClientSession() as session,
        serving(model_folder("tiny"), tmp_path) as (process, url),
    ):
        path = await create(session, url, items)
        sizes = [file.stat().st_size for file in (tmp_path / "store").iterdir()]
        limit_files(process, max(sizes) + 100_000)
        await until_full(session, url)
        async with session.post(f"{url}/v1/messages", json=BODY | {"max_tokens": 2}) as answer:
            assert answer.status == 200
        for call in (
            session.post(url + ROUTE, json={"requests": items}),
            session.post(f"{url}/v1/files", data=form(data=b"x" * (max(sizes) + 200_000))),
        ):
            async with call as answer:
                assert answer.status == 507
        assert not await is_done_within(session, url + path, 0.5)
        limit_files(process, resource.RLIM_INFINITY)
        batch, lines = await outcome(session, url + path)
        assert await takes_writes(session, url)
    assert [line["custom_id"] for line in lines] == [item["custom_id"] for item in items]
    assert batch["request_counts"]["succeeded"] == len(items)
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


def limit_files(process: Process, num_bytes: int) -> None:
    """Let no file of the process grow beyond that, as on a disk that is full."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))


async def until_full(session: aiohttp.ClientSession, url: str) -> None:
    """Return once the server says that it has no room."""
    while True:
        if not await takes_writes(session, url):
            return
        await asyncio.sleep(0.02)


async def takes_writes(session: aiohttp.ClientSession, url: str) -> bool:
    async with session.get(f"{url}/health") as response:
        return bool((await response.json())["store"]["takes_writes"])


async def create(session: aiohttp.ClientSession, url: str, items: list[Any]) -> str:
    """The path of a new batch."""
    async with session.post(url + ROUTE, json={"requests": items}) as response:
        return f"{ROUTE}/{(await response.json())['id']}"
