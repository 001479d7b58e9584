"""`minimsg bench --profile`, the server: how late its event loop is while streams run.

The server runs in this process, so that a timer in its own loop can be watched; its
clients are a `minimsg bench` in another. What the engine costs is in `stages.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from minimsg.bench.foreign import run
from minimsg.bench.report import percentiles
from minimsg.config import ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import listening, make_app

TICK_S: Final = 0.005
CLIENT_S: Final = 600.0  # for the clients to be done


@dataclass(frozen=True)
class Load:
    """So many streams at once, one request each."""

    streams: int
    prompt_tokens: int
    max_tokens: int


@dataclass(frozen=True)
class Watched:
    """How the server did under one load."""

    streams: int
    answered: int
    errors: dict[str, int]
    tokens_per_s: float
    lag_ms: dict[str, float]  # how late a timer of the event loop was


async def watch(chat: ChatModel, worker: EngineWorker, loads: list[Load]) -> list[Watched]:
    """Serve on a free port, and put one load after the other on it."""
    app = make_app(chat, worker, ServerConfig(no_store=True))
    async with listening(app) as url:
        return [await _watch(url, load) for load in loads]


async def _watch(url: str, load: Load) -> Watched:
    lags: list[float] = []
    watching = asyncio.create_task(_measure(lags))
    try:
        said = await asyncio.to_thread(run, _clients(url, load), CLIENT_S)
    finally:
        watching.cancel()
    (level,) = json.loads(said)["levels"]
    return Watched(
        streams=load.streams,
        answered=level["requests"],
        errors=level["errors"],
        tokens_per_s=level["output_tokens_per_s"],
        lag_ms=percentiles([1000 * lag for lag in lags]),
    )


async def _measure(lags: list[float]) -> None:
    while True:
        due = perf_counter() + TICK_S
        await asyncio.sleep(TICK_S)
        lags.append(max(0.0, perf_counter() - due))


def _clients(url: str, load: Load) -> list[str]:
    """The command of the process that asks."""
    flags = {
        "--url": url,
        "--streams": load.streams,
        "--requests": load.streams,
        "--prompt-tokens": load.prompt_tokens,
        "--max-tokens": load.max_tokens,
        "--json": "-",
    }
    words = [str(word) for pair in flags.items() for word in pair]
    return [sys.executable, "-P", "-m", "minimsg", "bench", *words]
