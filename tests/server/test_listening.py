"""`listening`: a server for as long as a block runs, in the caller's own event loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.errors import ConfigError
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import listening, make_app

from .conftest import ENGINE

MakeApp = Callable[[], web.Application]


@pytest.fixture
def app(model_folder: Callable[[str], Path]) -> MakeApp:
    def make() -> web.Application:
        folder = model_folder("scripted")
        worker = EngineWorker(load_engine(folder, ENGINE), max_queue=8)
        config = ServerConfig(no_store=True)
        return make_app(ChatModel.open(folder, "scripted"), worker, config)

    return make


async def test_two_servers_listen_in_one_loop_and_are_gone_after_it(app: MakeApp) -> None:
    async with aiohttp.ClientSession() as http:
        async with listening(app()) as one, listening(app()) as other:
            assert one != other
            for url in (one, other):
                async with http.get(f"{url}/health/ready") as response:
                    assert response.status == 200
        for url in (one, other):
            with pytest.raises(aiohttp.ClientConnectorError):
                await http.get(f"{url}/health/ready")


async def test_an_address_that_is_taken_is_refused_with_its_name(app: MakeApp) -> None:
    async with listening(app()) as url:
        port = urlsplit(url).port
        assert port is not None
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with listening(app(), port=port):
                pass
