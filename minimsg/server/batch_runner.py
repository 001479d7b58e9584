"""Runs the requests of message batches, on what interactive work leaves.

Few at once, and one at a time while anybody else's reply is in work: the others give way,
and are computed again later, their prompts from the cache as a rule. The way of one request
to its result is in `batch_item.py`. A result counts once it is on disk; a disk without room
is waited for. Whatever has no result when the server ends is run by the next one.
Invariant: a task runs one request at a time; with no requests, all of them only wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final

from aiohttp import web

from minimsg.errors import InternalError, StoreFull
from minimsg.protocol.message import new_id
from minimsg.server.batch_item import RETRY_S, ItemRunner, failed
from minimsg.server.state import Server
from minimsg.store import Item, ResultKind
from minimsg.store.records import MAX_DEATHS

logger = logging.getLogger(__name__)

NUM_AT_ONCE: Final = 4
DEADLY: Final = f"The server died {MAX_DEATHS} times while it ran this request."


class BatchRunner:
    """The tasks that run the requests of batches."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._items = ItemRunner(server)
        self._is_work_there = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin, with what the last server left first."""
        self.wake()
        self._tasks = [asyncio.create_task(self._work(n)) for n in range(NUM_AT_ONCE)]

    def wake(self) -> None:
        """There is something to run."""
        self._is_work_there.set()

    async def close(self) -> None:
        """Stop; what runs is run again by the next server."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, number: int) -> None:
        """Run one request after the other; the first of the tasks also beside interactive work."""
        while True:
            await self._is_work_there.wait()
            if number > 0:
                await self._server.until_idle()
            try:
                if (item := await self._next()) is not None:
                    await self._run(item, gives_way=number > 0)
                    self.wake()  # there may be one that had to be alone
            except StoreFull:  # which it has logged
                self.wake()
                await asyncio.sleep(RETRY_S)
            except Exception:  # the outermost loop: whatever the store has, it may pass
                logger.exception("a request of a message batch is tried again")
                self.wake()
                await asyncio.sleep(RETRY_S)

    async def _run(self, item: Item, *, gives_way: bool) -> None:
        try:
            await self._keep(item, *await self._result(item, gives_way))
        except Exception:
            await _patiently(partial(self._server.store.release_items, [item]))
            raise

    async def _next(self) -> Item | None:
        """A request to run, from now on ours; None if another task took the last."""
        async with self._claiming:
            if not self._is_work_there.is_set():
                return None
            self._is_work_there.clear()  # before looking: who wakes us meanwhile is not missed
            for item in await self._server.store.next_items(1):
                self._is_work_there.set()
                return item
        return None

    async def _result(self, item: Item, gives_way: bool) -> tuple[ResultKind, bytes]:
        if item.num_deaths >= MAX_DEATHS:
            return "errored", failed(InternalError(DEADLY), new_id("req_"))
        return await self._items.result(item, gives_way=gives_way)

    async def _keep(self, item: Item, kind: ResultKind, body: bytes) -> None:
        """Put a result on disk, however long the disk has no room."""
        finish = self._server.store.finish_item
        await _patiently(partial(finish, item.batch_id, item.custom_id, kind, body))


async def _patiently(write: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await write()
        except StoreFull:  # which it has logged
            await asyncio.sleep(RETRY_S)
        else:
            return


BATCHES: Final = web.AppKey("batches", BatchRunner)


async def run_batches(app: web.Application) -> AsyncIterator[None]:
    """Run batches for as long as the server runs."""
    runner = app[BATCHES]
    runner.start()
    yield
    await runner.close()
