"""`minimsg serve --misbehave NAME`, `--fault ...`: the server behind a proxy that does wrong.

The server itself takes a free port of loopback and behaves; the proxy has the address that
was asked for. What goes wrong stands in `minimsg/misbehave/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.misbehave.catalog import find
from minimsg.misbehave.faults import parse_faults
from minimsg.misbehave.proxy import Proxy, in_front
from minimsg.server.app import serve


async def serve_wrongly(
    app: web.Application, config: ServerConfig, on_ready: Callable[[str], None]
) -> int:
    """Run until a signal, as `serve` does; its exit code. Raises what `serve` raises."""
    behind: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    inner = replace(config, host="127.0.0.1", port=0)
    serving = asyncio.create_task(serve(app, inner, behind.set_result))
    either: set[asyncio.Future[Any]] = {serving, behind}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not behind.done():
        return await serving
    mutant = find(config.misbehave) if config.misbehave else None
    proxy = Proxy(behind.result(), mutant=mutant, faults=parse_faults(config.fault or ""))
    async with in_front(proxy, config.host, config.port) as url:
        on_ready(url)
        return await serving
