"""/inspect: the page; /minimsg/engine: what the engine is doing, once or live; pause and step.

The page's files hold no data, so they are open: the page asks for a key and sends it with
whatever it wants to know, which is closed like every other route. A viewer learns of other
tenants' requests only how many there are (`inspector/state.py`). Pausing holds everybody up:
it needs `--inspect-control`, or a server without keys that only this machine can reach, and
ends by itself when nobody asks again (`engine/pause.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Final, TypedDict

from aiohttp import web

from minimsg.engine.worker import EngineWorker
from minimsg.errors import Forbidden, NotFound, RateLimited
from minimsg.inspector.files import content_type, page_files
from minimsg.inspector.state import EngineState, engine_state
from minimsg.server.auth import KEYS, TENANT
from minimsg.server.origin import is_loopback
from minimsg.server.respond import json_response
from minimsg.server.state import SERVER, Server
from minimsg.server.stream import stream_response

# Scripts, styles and requests of this server only; no string ever becomes markup or code.
POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",  # the empty icon
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
PAGE_HEADERS: Final = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
LOOK_S: Final = 0.1  # between two looks at the engine
SILENCE_S: Final = 5.0  # after which a viewer is told although nothing has changed
MAX_VIEWERS: Final = 8  # of a tenant, at once
NUM_STEPS: Final = 60  # that a viewer is told at first


class Control(TypedDict):
    """The model, whether its engine is held, and whether this viewer may hold it."""

    model: str
    has_layers: bool  # that can be looked into
    paused: bool
    resumes_in_s: float
    can_control: bool


class LiveState(EngineState, Control):
    """What a viewer is told."""


async def get_page(request: web.Request) -> web.Response:
    """The page itself."""
    return _file("index.html")


async def get_page_file(request: web.Request) -> web.Response:
    """What the page is made of. Raises NotFound."""
    return _file(request.match_info["file"])


async def get_engine(request: web.Request) -> web.Response:
    """What the engine is doing now."""
    return json_response(_look(request, after=0))


async def watch_engine(request: web.Request) -> web.StreamResponse:
    """The same as a stream, at most ten times a second; each has only the steps that are new.

    Raises RateLimited where a tenant has too many of them.
    """
    with request.app[VIEWERS].one_more(request[TENANT]):
        return await stream_response(request, _looks(request), {})


async def pause_engine(request: web.Request) -> web.Response:
    """Hold the engine, or hold it longer. Raises Forbidden."""
    _controlled(request).pause()
    return await _after_order(request)


async def step_engine(request: web.Request) -> web.Response:
    """Let the engine take one step and then hold it. Raises Forbidden."""
    _controlled(request).pause(num_steps=1)
    return await _after_order(request)


async def resume_engine(request: web.Request) -> web.Response:
    """Let the engine go on. Raises Forbidden."""
    _controlled(request).resume()
    return await _after_order(request)


class Viewers:
    """How many live views each tenant has open."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def one_more(self, tenant: str) -> Iterator[None]:
        """Count a view while it is open. Raises RateLimited."""
        if self._open[tenant] >= MAX_VIEWERS:
            raise RateLimited(f"At most {MAX_VIEWERS} live views of the engine at once.")
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1


VIEWERS: Final = web.AppKey("viewers", Viewers)


def _file(name: str) -> web.Response:
    """A file of the page. Raises NotFound."""
    body = page_files().get(name)
    if body is None:
        raise NotFound("Not found; the page is at /inspect.")
    headers = PAGE_HEADERS | {"content-type": f"{content_type(name)}; charset=utf-8"}
    return web.Response(body=body, headers=headers)


def _look(request: web.Request, after: int) -> LiveState:
    """The engine now, with the steps after number `after`."""
    server = request.app[SERVER]
    snapshot = server.worker.engine.look()
    steps = server.worker.onlookers.look(after)[-NUM_STEPS:]
    return LiveState(
        **engine_state(snapshot, steps, request[TENANT]),
        **_control(request, server),
    )


async def _looks(request: web.Request) -> AsyncGenerator[LiveState, None]:
    """What has changed, until the server shuts down."""
    server, after, said, silent_s = request.app[SERVER], 0, None, 0.0
    while not server.is_draining:
        state = _look(request, after)
        after = max([after, *(step["number"] for step in state["steps"])])
        sign = _sign(state)
        if sign != said or silent_s >= SILENCE_S:
            said, silent_s = sign, 0.0
            yield state
        await asyncio.sleep(LOOK_S)
        silent_s += LOOK_S


def _sign(state: LiveState) -> tuple[object, ...]:
    """What changes whenever there is something new to see."""
    sequences = [(each["id"], each["state"], each["num_pages"]) for each in state["sequences"]]
    others = state["others"]
    return (state["num_steps"], state["paused"], *others.values(), *sequences)


def _control(request: web.Request, server: Server) -> Control:
    left_s = server.worker.pause_left_s
    return Control(
        model=server.chat.name,
        has_layers=bool(server.worker.engine.hooks.points),
        paused=left_s > 0,
        resumes_in_s=round(left_s, 1),
        can_control=_can_control(request),
    )


def _can_control(request: web.Request) -> bool:
    config, keys = request.app[SERVER].config, request.app[KEYS]
    return config.inspect_control or (not keys and is_loopback(config.host))


def _controlled(request: web.Request) -> EngineWorker:
    """The engine's worker, for whoever may hold it. Raises Forbidden."""
    if not _can_control(request):
        raise Forbidden("Pausing holds up everybody's requests; --inspect-control allows it.")
    return request.app[SERVER].worker


async def _after_order(request: web.Request) -> web.Response:
    """The engine a moment later: orders are taken between two steps."""
    await asyncio.sleep(LOOK_S)
    return json_response(_look(request, after=0))
