"""Servers for tests: a real one on 127.0.0.1 with the scripted or the tiny model behind it.

`start` is a factory, so that a test can choose the settings; `scripted` and `tiny` are
the usual two.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from minimsg.builtin import write_scripted, write_tiny
from minimsg.config import BY_TEMPLATE, EngineConfig, ParserConfig, ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app, make_runner
from minimsg.server.state import SERVER

from .bystander import bystander
from .running import TAPES, Running

ENGINE = EngineConfig(dtype="float32", num_pages=1_024, threads=1)
SERVING = ServerConfig()
WRITERS: dict[str, Callable[[Path], None]] = {
    "scripted": lambda folder: write_scripted(folder, TAPES),
    "tiny": write_tiny,
}

Start = Callable[..., Awaitable[Running]]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a built-in model, written once."""

    def folder(name: str) -> Path:
        path = tmp_path_factory.getbasetemp() / name
        if not path.exists():
            path.mkdir()
            WRITERS[name](path)
        return path

    return folder


@pytest.fixture
async def start(model_folder: Callable[[str], Path]) -> AsyncIterator[Start]:
    """Starts a server: `await start("scripted", engine=..., config=...)`."""
    async with AsyncExitStack() as stack:

        async def start_one(
            name: str = "scripted",
            engine: EngineConfig = ENGINE,
            config: ServerConfig = SERVING,
            parsers: ParserConfig = BY_TEMPLATE,
        ) -> Running:
            if config.data_dir is None:
                config = replace(config, no_store=True)
            folder = model_folder(name)
            worker = EngineWorker(load_engine(folder, engine), max_queue=config.max_queue)
            chat = ChatModel.open(folder, name, parsers)
            runner = make_runner(make_app(chat, worker, config))
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.SockSite(runner, listening_socket()).start()
            session = await stack.enter_async_context(aiohttp.ClientSession())
            host, port = runner.addresses[0]
            return Running(f"http://{host}:{port}", runner.app[SERVER], session, runner.app)

        yield start_one


def listening_socket() -> socket.socket:
    """A port on 127.0.0.1 whose connections hold little, so that a stalled reader is felt soon."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
    return listening


@pytest.fixture
async def scripted(start: Start) -> Running:
    """A server with the scripted model."""
    return await start("scripted")


@pytest.fixture
async def tiny(start: Start) -> Running:
    """A server with the tiny transformer of random weights."""
    return await start("tiny")


@pytest.fixture
async def watched(scripted: Running) -> AsyncIterator[Running]:
    """The same, while somebody else streams from it and must notice nothing."""
    async with bystander(scripted) as running:
        yield running
