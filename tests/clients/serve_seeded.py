"""A server in which the ids that the SDK's own tests make up are always there.

    python serve_seeded.py FOLDER

Prints its URL when it listens. Those tests delete `file_id` and cancel `message_batch_id`
again and again, so before a request that names one it is made anew: a batch that has
ended, or for a cancel one that has not.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from aiohttp import web

from minimsg.config import EngineConfig, ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.errors import InvalidRequest, NotFound
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app, serve
from minimsg.server.auth import LOCAL
from minimsg.server.respond import Handler
from minimsg.server.state import SERVER
from minimsg.store import NewItem, Store

BATCH, FILE = "message_batch_id", "file_id"
NUM_ITEMS = 20  # more than can run before the cancel that follows


@web.middleware
async def seed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Make what the path names."""
    store, path = request.app[SERVER].store, request.path
    if BATCH in path:
        await make_batch(store, has_ended=not path.endswith("/cancel"))
    if FILE in path:
        await make_file(store)
    return await handler(request)


async def make_batch(store: Store, has_ended: bool) -> None:
    """Let `BATCH` be a new one."""
    with suppress(NotFound):
        while True:
            with suppress(InvalidRequest):  # what ran when it was canceled is not over yet
                await store.delete_batch(LOCAL, BATCH)
    items = [NewItem(f"i{number}", b"{}") for number in range(NUM_ITEMS)]
    await store.create_batch(LOCAL, BATCH, b"{}", items)
    if has_ended:
        for item in items:
            await store.finish_item(BATCH, item.custom_id, "errored", b"{}")


async def make_file(store: Store) -> None:
    """Let `FILE` be a new one."""
    with suppress(NotFound):
        await store.files.delete(LOCAL, FILE)
    async with store.files.receive() as incoming:
        incoming.write(b"x")
        await store.files.add(LOCAL, FILE, incoming, filename="a.txt", mime_type="text/plain")


def main(folder: Path) -> int:
    """Serve until a signal; the exit code."""
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=1_024, threads=1))
    config = ServerConfig(port=0, no_store=True, any_model=True, drain_timeout_s=1)
    app = make_app(ChatModel.open(folder, "tiny"), EngineWorker(engine, max_queue=64), config)
    app.middlewares.append(seed)
    return asyncio.run(serve(app, config, partial(print, flush=True)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
