"""GET /minimsg/traces and /minimsg/traces/{id}: the requests that were traced, to their tenant.

The routes are minimsg's own and alike in both profiles. Next: `records.py`, `tracing.py`.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from minimsg.server.auth import TENANT
from minimsg.server.respond import json_response
from minimsg.server.state import SERVER
from minimsg.server.tracing import line_of, trace_of
from minimsg.trace import LIST, TracePage, to_json


async def list_traces(request: web.Request) -> web.Response:
    """Answer a `TracePage`, the latest first."""
    server = request.app[SERVER]
    recordings = server.records.of(request[TENANT])
    lines = [line_of(recording, server.chat.name) for recording in recordings]
    return json_response(LIST.dump_python(TracePage(lines)))


async def get_trace(request: web.Request) -> web.Response:
    """Answer a `Trace`. Raises NotFound, Overloaded."""
    server = request.app[SERVER]
    recording = server.records.find(request[TENANT], request.match_info["id"])
    trace = await trace_of(server, recording)
    body = await asyncio.to_thread(to_json, trace)  # a long prompt is tens of megabytes
    return web.Response(body=body, content_type="application/json")
