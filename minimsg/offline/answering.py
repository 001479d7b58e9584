"""A model that answers requests of message batches in this process, without HTTP.

A whole `Server` but for its routes: what it calls is what the server's own batches call
(`server/batch_item.py`). Knows how to load and to end; not where requests come from.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from multidict import CIMultiDict, CIMultiDictProxy

from minimsg import hub
from minimsg.config import EngineConfig, ParserConfig, ServerConfig
from minimsg.errors import GenerationFailed, RequestError
from minimsg.offline.requests import Line
from minimsg.protocol.message import new_id
from minimsg.server.auth import LOCAL
from minimsg.server.batch_item import DIALECT, ItemRunner, failed
from minimsg.server.dialect import from_headers
from minimsg.server.loading import load_model
from minimsg.server.state import Server
from minimsg.store import Item, ResultKind

WAITING: Final = 2  # requests for each that the engine computes: the next are ready in time


@dataclass(frozen=True)
class Asked:
    """What requests are answered with, and how they are read; a process can send it to another."""

    model: str
    engine: EngineConfig
    server: ServerConfig
    parsers: ParserConfig
    version: str  # as the headers of whoever creates a batch would have it
    betas: tuple[str, ...]

    @property
    def num_at_once(self) -> int:
        """Requests in work that keep the engine full."""
        return WAITING * self.engine.max_sequences

    @property
    def dialect(self) -> bytes:
        """How requests are read, as batches keep it. Raises InvalidRequest."""
        given = {"anthropic-version": self.version, "anthropic-beta": ",".join(self.betas)}
        dialect = from_headers(CIMultiDictProxy(CIMultiDict(given)), self.server)
        return DIALECT.dump_json(replace(dialect, is_in_batch=True))


class Answerer:
    """A loaded model. Any number of requests may be in work at once."""

    def __init__(self, server: Server, dialect: bytes) -> None:
        self._server = server
        self._items = ItemRunner(server)
        self._dialect = dialect

    @classmethod
    @asynccontextmanager
    async def open(cls, asked: Asked) -> AsyncIterator[Answerer]:
        """Load the model, pulled if it is not here; it ends with the block.

        Raises what `hub.ensure` and `load_model` raise, ConfigError, InvalidRequest.
        """
        config = replace(asked.server, no_store=True)
        folder = hub.ensure(asked.model, config.data_dir)
        loaded = load_model(asked.model, folder, asked.engine, asked.num_at_once, asked.parsers)
        server = Server(loaded.chat, loaded.worker, config)
        server.check_can_count()
        await server.store.open()
        loaded.worker.start()
        try:
            yield cls(server, asked.dialect)
        finally:
            await asyncio.to_thread(loaded.worker.stop)
            server.grammars.close()
            await server.pool.close()
            await server.close_fetcher()
            await server.store.close()

    def check(self) -> None:
        """Raise GenerationFailed once the engine has failed for good."""
        if self._server.worker.is_over:
            raise GenerationFailed("the engine has failed too often; the log says why")

    async def answer(self, line: Line) -> tuple[ResultKind, bytes]:
        """The result of the request in `line`, whatever is wrong with it."""
        assert line.custom_id is not None
        if line.fault is not None:
            return "errored", refused(line.fault)
        item = Item("", line.custom_id, LOCAL, self._dialect, line.params)
        return await self._items.result(item)


def refused(fault: RequestError) -> bytes:
    """The result of a request that has no params to be answered."""
    return failed(fault, new_id("req_"))
