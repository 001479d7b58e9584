"""GET /health, /health/live, /health/ready: is it up.

Live: the engine thread runs and its heartbeat is fresh (a dead engine is never 200).
Ready: live and not shutting down. /health answers with both and with the engine's own
figures, and has the status of ready. A disk that takes no more is told and changes neither:
messages are answered without it.
"""

from __future__ import annotations

from dataclasses import asdict

from aiohttp import web

from minimsg.server.respond import json_response
from minimsg.server.state import SERVER


async def health(request: web.Request) -> web.Response:
    """Everything: 200 if ready, else 503."""
    server = request.app[SERVER]
    state = {
        "live": server.is_live,
        "ready": server.is_ready,
        "requests": server.num_requests,
        "heartbeat_age_s": round(server.worker.heartbeat_age_s, 3),
        "engine": asdict(server.worker.stats()),
        "store": {"takes_writes": server.store.disk.takes_writes},
    }
    return json_response(state, status=200 if server.is_ready else 503)


async def live(request: web.Request) -> web.Response:
    """200 while the engine works, else 503: restart me."""
    is_live = request.app[SERVER].is_live
    return json_response({"live": is_live}, status=200 if is_live else 503)


async def ready(request: web.Request) -> web.Response:
    """200 while new requests are taken, else 503: send them elsewhere."""
    is_ready = request.app[SERVER].is_ready
    return json_response({"ready": is_ready}, status=200 if is_ready else 503)
