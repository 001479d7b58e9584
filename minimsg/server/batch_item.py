"""One request of a message batch, from its bytes to its result.

The same path as any request's (`messages.py`): prepare, submit, reply, fold; at a lower
priority. What could not be run for a reason that passes (a full queue, an engine that starts
again) is tried again; what is wrong with a request is its result. Knows nothing of where
requests come from and results are kept: `batch_runner.py` for a server, `minimsg/offline/`
without one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from time import monotonic
from typing import Final

from pydantic import TypeAdapter

from minimsg.engine.types import Priority
from minimsg.errors import GenerationFailed, Overloaded
from minimsg.protocol.batches import errored, succeeded
from minimsg.protocol.build import fold
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.envelope import envelope
from minimsg.protocol.events import Event
from minimsg.protocol.message import Message, new_id
from minimsg.server.dialect import own_dialect
from minimsg.server.messages import reply
from minimsg.server.prepare import prepare_message
from minimsg.server.recording import Recording
from minimsg.server.respond import as_request_error
from minimsg.server.state import Server
from minimsg.store import Item, ResultKind

logger = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # as 529 tells clients
MAX_FAILURES: Final = 3  # of the engine beneath one request, which may be their cause

DIALECT: Final[TypeAdapter[Dialect]] = TypeAdapter(Dialect)


class InTheWay(Exception):
    """Interactive work has come, and this is not the request that may run beside it."""


class ItemRunner:
    """Runs requests of message batches, any number at once, in the engine of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._preparing = asyncio.Lock()  # a thread and a process are for interactive work
        self._num_running = 0

    async def result(self, item: Item, *, gives_way: bool = False) -> tuple[ResultKind, bytes]:
        """What comes of a request, after as many tries as it needs.

        `gives_way`: it stops for interactive work, and is tried again once there is none.
        """
        num_failures = 0
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
                    return "errored", failed(error, request_id)
            except Exception as error:  # the outermost loop, as for the HTTP handler
                return "errored", failed(error, request_id)
            await asyncio.sleep(RETRY_S)

    async def _answer(self, item: Item, request_id: str, gives_way: bool) -> Message:
        """The message. Raises InTheWay, RequestError, GenerationFailed."""
        server, dialect, arrived = self._server, self._dialect(item), monotonic()
        server.check_can_answer()
        async with self._preparing:
            sources = await server.urls_of(item.params, dialect)
        fetched = await server.fetch(sources)  # a slow one holds up no other request
        async with self._preparing:
            known = await server.known_of(item.tenant, item.params, fetched)
            prepared = await server.pool.run(prepare_message, item.params, dialect, known)
            generation = await server.generation(request_id, prepared, item.tenant)
        generation = replace(generation, priority=Priority.BACKGROUND)
        recording = None
        if server.records.traces_all:
            body = item.params
            recording = Recording(
                server.records, body, dialect, known, prepared, generation, arrived
            )
            generation = recording.generation
        tokens = await server.worker.submit(generation)
        self._num_running += 1
        try:
            events = reply(server, tokens, generation, prepared, recording=recording)
            async with tokens, aclosing(events):
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


def failed(error: Exception, request_id: str) -> bytes:
    """The result of a request that ended with `error`."""
    return errored(envelope(as_request_error(error, request_id), request_id))
