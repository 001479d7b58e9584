"""What the tests of the suite share: a run against a server, and what it found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from minimsg.builtin import write_scripted, write_tiny
from minimsg.config import EngineConfig, ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app, make_runner

THINKING = "<think>Hm.</think>Hello there, I have something to say here."
WRITERS: dict[str, Callable[[Path], None]] = {
    "tiny": write_tiny,
    "scripted": write_scripted,
    "thinking": lambda folder: write_scripted(folder, [THINKING]),
}

Serve = Callable[..., Awaitable[str]]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Serve]:
    """Starts one of our servers: `await serve("tiny", profile="strict")` is its URL."""
    async with AsyncExitStack() as stack:

        async def start(model: str, *, threads: int = 1, **config: object) -> str:
            folder = tmp_path / model
            if not folder.exists():
                folder.mkdir()
                WRITERS[model](folder)
            engine = EngineConfig(dtype="float32", num_pages=2_048, threads=threads)
            settings = ServerConfig(no_store=True, **config)  # type: ignore[arg-type]
            worker = EngineWorker(load_engine(folder, engine), max_queue=settings.max_queue)
            chat = ChatModel.open(folder, model)
            return await listen(stack, make_runner(make_app(chat, worker, settings)))

        yield start


async def listen(stack: AsyncExitStack, runner: web.AppRunner) -> str:
    """Start `runner` on a free port; its base URL."""
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"
