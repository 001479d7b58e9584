"""The server as a whole: routes, life and death.

`make_app` joins model, engine thread and settings into an aiohttp application;
`serve` runs it until a signal, lets running replies finish, and says how it ended.
Knows when things begin and end; what happens to a request is in `messages.py`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from aiohttp import web

from minimsg.config import ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.errors import ConfigError, StoreFull
from minimsg.limits import LIMITS
from minimsg.prompt.chat import ChatModel
from minimsg.server.auth import KEYS, authenticate, open_keys
from minimsg.server.batch_runner import BATCHES, BatchRunner, run_batches
from minimsg.server.batches import (
    cancel_batch,
    create_batch,
    delete_batch,
    get_batch,
    get_results,
    list_batches,
)
from minimsg.server.connections import Runner
from minimsg.server.count_tokens import count_tokens
from minimsg.server.describe import describe, describe_api
from minimsg.server.files import delete_file, get_content, get_file, list_files, upload_file
from minimsg.server.health import health, live, ready
from minimsg.server.inspect import (
    VIEWERS,
    Viewers,
    get_engine,
    get_page,
    get_page_file,
    pause_engine,
    resume_engine,
    step_engine,
    watch_engine,
)
from minimsg.server.lens import get_lens, get_logits
from minimsg.server.links import check_public_url
from minimsg.server.messages import create_message
from minimsg.server.metrics import METRICS, Metrics, count_requests, metrics, watch_loop
from minimsg.server.middleware import add_headers, expect, observe
from minimsg.server.models import get_model, list_models
from minimsg.server.origin import ALLOWED, AllowList, guard
from minimsg.server.ratelimit import RATES, limit_requests
from minimsg.server.signals import signals
from minimsg.server.state import SERVER, Server
from minimsg.server.trace_routes import get_trace, list_traces
from minimsg.server.traces import WithoutMessages
from minimsg.store import Store

logger = logging.getLogger(__name__)
http_logger = logging.getLogger("minimsg.http")  # aiohttp's own words
http_logger.addFilter(WithoutMessages())

get, post = partial(web.get, expect_handler=expect), partial(web.post, expect_handler=expect)
delete = partial(web.delete, expect_handler=expect)
ROUTES: Final = [
    get("/", describe),
    get("/openapi.json", describe_api),
    *(post(f"{prefix}/messages", create_message) for prefix in ("/v1", "")),
    *(post(f"{prefix}/messages/count_tokens", count_tokens) for prefix in ("/v1", "")),
    *(post(f"{prefix}/messages/batches", create_batch) for prefix in ("/v1", "")),
    *(get(f"{prefix}/messages/batches", list_batches) for prefix in ("/v1", "")),
    *(get(f"{prefix}/messages/batches/{{id}}", get_batch) for prefix in ("/v1", "")),
    *(delete(f"{prefix}/messages/batches/{{id}}", delete_batch) for prefix in ("/v1", "")),
    *(post(f"{prefix}/messages/batches/{{id}}/cancel", cancel_batch) for prefix in ("/v1", "")),
    *(get(f"{prefix}/messages/batches/{{id}}/results", get_results) for prefix in ("/v1", "")),
    *(get(f"{prefix}/models", list_models) for prefix in ("/v1", "")),
    *(get(f"{prefix}/models/{{id:.+}}", get_model) for prefix in ("/v1", "")),
    *(post(f"{prefix}/files", upload_file) for prefix in ("/v1", "")),
    *(get(f"{prefix}/files", list_files) for prefix in ("/v1", "")),
    *(get(f"{prefix}/files/{{id}}", get_file) for prefix in ("/v1", "")),
    *(delete(f"{prefix}/files/{{id}}", delete_file) for prefix in ("/v1", "")),
    *(get(f"{prefix}/files/{{id}}/content", get_content) for prefix in ("/v1", "")),
    get("/inspect", get_page),
    get("/inspect/{file:.+}", get_page_file),
    get("/minimsg/engine", get_engine),
    get("/minimsg/engine/live", watch_engine),
    post("/minimsg/engine/pause", pause_engine),
    post("/minimsg/engine/step", step_engine),
    post("/minimsg/engine/resume", resume_engine),
    post("/minimsg/logits", get_logits),
    post("/minimsg/lens", get_lens),
    get("/minimsg/traces", list_traces),
    get("/minimsg/traces/{id}", get_trace),
    get("/health", health),
    get("/health/live", live),
    get("/health/ready", ready),
    get("/metrics", metrics),
]  # clients whose base URL already ends in /v1 leave it out

EXIT_OK, EXIT_ENGINE, EXIT_INTERRUPTED = 0, 70, 130
TIDY_S: Final = 30.0  # between two looks at what in the store is too old
FAREWELL_S: Final = 2.0  # to send an error to every stream that is cut


def make_app(chat: ChatModel, worker: EngineWorker, config: ServerConfig) -> web.Application:
    """The application; it starts the worker when it starts and stops it when it ends.

    Raises ConfigError.
    """
    app = web.Application(
        # the first is outermost
        middlewares=[count_requests, observe, guard, authenticate, limit_requests],
        client_max_size=LIMITS.body_bytes,
    )
    app[SERVER] = Server(chat, worker, config)
    app[BATCHES] = BatchRunner(app[SERVER])
    app[METRICS] = Metrics(worker)
    app[ALLOWED] = AllowList.of(config)
    check_public_url(config)
    app[KEYS] = open_keys(config)
    app[VIEWERS] = Viewers()
    app[RATES] = app[SERVER].rates
    app.add_routes(ROUTES)
    app.on_response_prepare.append(add_headers)
    app.on_shutdown.append(_cut_replies)
    app.cleanup_ctx.append(_keep_store)
    app.cleanup_ctx.append(_run_engine)
    app.cleanup_ctx.append(run_batches)
    app.cleanup_ctx.append(watch_loop)
    return app


def make_runner(app: web.Application) -> web.AppRunner:
    """The application behind aiohttp's server, set up as the handlers expect it."""
    return Runner(
        app,
        handler_cancellation=True,  # leaving ends the handler
        auto_decompress=False,  # `body.py` does, and counts
        logger=http_logger,
        access_log=None,  # `middleware.py` has its own
        shutdown_timeout=FAREWELL_S,
    )


async def serve(app: web.Application, config: ServerConfig, on_ready: Callable[[str], None]) -> int:
    """Run until SIGTERM or Ctrl-C, then drain; `on_ready` is told the base URL.

    Returns the exit code: 0, 130 after Ctrl-C, 70 if the engine failed for good.
    Raises ConfigError.
    """
    async with listening(app, config.host, config.port) as url:
        with signals() as received:
            on_ready(url)
            return await _run(app[SERVER], received)


@asynccontextmanager
async def listening(
    app: web.Application, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[str]:
    """Answer requests while the block runs, in its event loop; the base URL. Port 0: a free one.

    Raises ConfigError.
    """
    runner = make_runner(app)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        yield _base_url(runner)
    finally:
        await runner.cleanup()


async def _run(server: Server, received: asyncio.Queue[int]) -> int:
    while not server.worker.is_over:
        try:
            number = await asyncio.wait_for(received.get(), timeout=0.5)
        except TimeoutError:
            continue
        await _drain(server, received)
        return EXIT_INTERRUPTED if number == signal.SIGINT else EXIT_OK
    logger.critical("the engine has failed for good; the server ends")
    await asyncio.sleep(FAREWELL_S)  # health says 503 and open streams get their error
    return EXIT_ENGINE


async def _drain(server: Server, received: asyncio.Queue[int]) -> None:
    """Take no new work, wait for what runs: until it is done, late, or a second signal comes."""
    server.is_draining = True
    number, limit = server.num_requests, server.config.drain_timeout_s
    waiting_for = "1 request is" if number == 1 else f"{number} requests are"
    logger.info(
        "shutting down: %s being answered and may take %g s more; a second Ctrl-C ends at once",
        waiting_for,
        limit,
    )
    done = asyncio.create_task(server.until_idle())
    again = asyncio.create_task(received.get())
    await asyncio.wait(
        {done, again},
        timeout=server.config.drain_timeout_s,
        return_when=asyncio.FIRST_COMPLETED,
    )
    done.cancel()
    again.cancel()


def _base_url(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _keep_store(app: web.Application) -> AsyncIterator[None]:
    store = app[SERVER].store
    await store.open()
    tidying = asyncio.create_task(_tidy(store))
    yield
    tidying.cancel()
    await store.close()


async def _tidy(store: Store) -> None:
    while True:
        with suppress(StoreFull):  # which it has logged; next time
            await store.tidy()
        await asyncio.sleep(TIDY_S)


async def _run_engine(app: web.Application) -> AsyncIterator[None]:
    server = app[SERVER]
    server.worker.start()
    warming = asyncio.create_task(server.grammars.warm())
    yield
    warming.cancel()
    server.grammars.close()
    await server.pool.close()
    await server.close_fetcher()


async def _cut_replies(app: web.Application) -> None:
    """End what still runs; the handlers then have `FAREWELL_S` to say so."""
    server = app[SERVER]
    server.is_draining = True
    await asyncio.to_thread(server.worker.stop)
