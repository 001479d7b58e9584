"""Runs the requests of message batches, on what interactive work leaves.

The same path as any request's (`messages.py`): prepare, submit, reply, fold; at a lower
priority, few at once, and one at a time while anybody else's reply is in work: the others
give way, and are computed again later, their prompts from the cache as a rule.
What could not be run for a reason that passes (a full queue, an engine that starts again,
a disk without room) is tried again; what is wrong with a request is its result. A result
counts once it is on disk. Whatever has none when the server ends is run by the next one.
Invariant: a task runs one request at a time; with no requests, all of them only wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import web
from pydantic import TypeAdapter

from minimsg.engine.types import Priority
from minimsg.errors import GenerationFailed, InternalError, Overloaded, StoreFull
from minimsg.protocol.batches import errored, succeeded
from minimsg.protocol.build import fold
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.envelope import envelope
from minimsg.protocol.events import Event
from minimsg.protocol.message import Message, new_id
from minimsg.server.dialect import own_dialect
from minimsg.server.messages import reply
from minimsg.server.prepare import prepare_message
from minimsg.server.respond import as_request_error
from minimsg.server.state import Server
from minimsg.store import Item, ResultKind
from minimsg.store.records import MAX_DEATHS

logger = logging.getLogger(__name__)

NUM_AT_ONCE: Final = 4
RETRY_S: Final = 1.0  # as 529 tells clients
MAX_FAILURES: Final = 3  # of the engine beneath one request, which may be their cause
DEADLY: Final = f"The server died {MAX_DEATHS} times while it ran this request."

DIALECT: Final[TypeAdapter[Dialect]] = TypeAdapter(Dialect)


class InTheWay(Exception):
    """Interactive work has come, and this is not the request that may run beside it."""


class BatchRunner:
    """The tasks that run the requests of batches."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_work_there = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._preparing = asyncio.Lock()  # a thread and a process are for interactive work
        self._num_running = 0
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
        """What comes of a request, after as many tries as it needs."""
        num_failures = 0
        if item.num_deaths >= MAX_DEATHS:
            return "errored", _failed(InternalError(DEADLY), new_id("req_"))
        while True:
            request_id = new_id("req_")
            try:
                return "succeeded", succeeded(await self._answer(item, request_id, gives_way))
            except InTheWay:
                await self._server.until_idle()
                continue
            except Overloaded as error:
                logger.debug("%s waits: %s", request_id, error)
            except GenerationFailed as error:
                worker = self._server.worker
                num_failures += not worker.is_over  # by then the next server has it
                if worker.is_alive or num_failures == MAX_FAILURES:
                    return "errored", _failed(error, request_id)
            except Exception as error:  # the outermost loop, as for the HTTP handler
                return "errored", _failed(error, request_id)
            await asyncio.sleep(RETRY_S)

    async def _answer(self, item: Item, request_id: str, gives_way: bool) -> Message:
        """The message. Raises InTheWay, RequestError, GenerationFailed."""
        server, dialect = self._server, self._dialect(item)
        server.check_can_answer()
        async with self._preparing:
            known = await server.known_of(item.tenant, item.params)
            prepared = await server.pool.run(prepare_message, item.params, dialect, known)
            generation = await server.generation(request_id, prepared, item.tenant)
        generation = replace(generation, priority=Priority.BACKGROUND)
        tokens = await server.worker.submit(generation)
        self._num_running += 1
        try:
            async with tokens, aclosing(reply(server, tokens, generation, prepared)) as events:
                return fold([event async for event in self._watched(events, gives_way)])
        finally:
            self._num_running -= 1

    async def _watched(self, events: AsyncIterator[Event], gives_way: bool) -> AsyncIterator[Event]:
        """The same events, as long as nobody else's reply is in work. Raises InTheWay."""
        async for event in events:
            if gives_way and self._server.num_requests > 0:
                stats = self._server.worker.stats()
                if stats.running + stats.waiting > self._num_running:
                    raise InTheWay
            yield event

    def _dialect(self, item: Item) -> Dialect:
        """That of whoever created the batch, and what this server can do."""
        kept, own = DIALECT.validate_json(item.dialect), own_dialect(self._server)
        drops = self._server.config.drop_server_tools
        return replace(kept, lacking=own.lacking, without=own.without, drops_server_tools=drops)

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


def _failed(error: Exception, request_id: str) -> bytes:
    return errored(envelope(as_request_error(error, request_id), request_id))


BATCHES: Final = web.AppKey("batches", BatchRunner)


async def run_batches(app: web.Application) -> AsyncIterator[None]:
    """Run batches for as long as the server runs."""
    runner = app[BATCHES]
    runner.start()
    yield
    await runner.close()
