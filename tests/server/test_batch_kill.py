"""A server that is killed at random moments of a batch loses nothing and says nothing twice."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from .batching import ROUTE

SCRIPT = Path(__file__).parent / "serve_store.py"
BODY: Any = {"model": "tiny", "messages": [{"role": "user", "content": "go"}]}
MANY = [pytest.mark.soak, pytest.mark.timeout(3_600)]


@asynccontextmanager
async def serving(folder: Path, data_dir: Path) -> AsyncIterator[tuple[Process, str]]:
    """A server's process and its URL; killed at the end, whatever it does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SCRIPT), str(folder), str(data_dir)), stdout=PIPE, stderr=DEVNULL
    )
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
            batch = await until_done(session, url + path)
            async with session.get(f"{url}{path}/results") as response:
                text = await response.text()
    assert num_cut > 0, "no kill came before the end"
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["custom_id"] for line in lines] == [item["custom_id"] for item in items]
    for line, item in zip(lines, items, strict=True):
        assert line["result"]["type"] == "succeeded"
        usage = line["result"]["message"]["usage"]
        assert 0 < usage["output_tokens"] <= item["params"]["max_tokens"]
    counts = {"processing": 0, "succeeded": num_items, "errored": 0, "canceled": 0, "expired": 0}
    assert batch["request_counts"] == counts


async def create(session: aiohttp.ClientSession, url: str, items: list[Any]) -> str:
    """The path of a new batch."""
    async with session.post(url + ROUTE, json={"requests": items}) as response:
        return f"{ROUTE}/{(await response.json())['id']}"
