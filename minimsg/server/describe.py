"""GET / and GET /openapi.json: what answers here, for people, probes and generators of code."""

from __future__ import annotations

import asyncio
from functools import cache

from aiohttp import web

from minimsg import __version__
from minimsg.protocol.openapi import document
from minimsg.protocol.sse import to_json
from minimsg.server.respond import json_response
from minimsg.server.state import SERVER


async def describe(request: web.Request) -> web.Response:
    """The routes and the model; clients also probe this with HEAD."""
    routes = [
        f"{route.method} {route.resource.canonical}"
        for route in request.app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    ]
    name = request.app[SERVER].chat.name
    return json_response(
        {"name": "minimsg", "version": __version__, "model": name, "routes": routes}
    )


async def describe_api(request: web.Request) -> web.Response:
    """The OpenAPI document."""
    text = await asyncio.to_thread(_api)  # a tenth of a second, once
    return web.Response(text=text, content_type="application/json")


@cache
def _api() -> str:
    return to_json(document())
