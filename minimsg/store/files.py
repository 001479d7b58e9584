"""Uploaded files as the server sees them: bytes first, then the row that makes them visible.

Invariant: a file that is listed has all its bytes on disk. Bytes without a row, which a
crash can leave, are swept at the next start. Next: `file_rows.py` and `blobs.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from minimsg.errors import NotFound
from minimsg.store import file_rows
from minimsg.store.blobs import Blobs, Incoming
from minimsg.store.database import Database
from minimsg.store.records import File

NEWEST: Final = 1 << 62  # above every number


class Files:
    """The files of all tenants."""

    def __init__(self, database: Database, blobs: Blobs, clock: Callable[[], float]) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Incoming]:
        """A file to write to, from threads; gone at the end unless `add` has kept it."""
        incoming = await asyncio.to_thread(self._blobs.receive)
        try:
            yield incoming
        finally:
            await asyncio.to_thread(incoming.discard)

    async def add(
        self,
        tenant: str,
        id: str,
        incoming: Incoming,
        *,
        filename: str,
        mime_type: str,
        expires_in_s: int | None = None,
    ) -> File:
        """Keep what was received. Raises StoreFull."""
        now = self._clock()
        expires_at = None if expires_in_s is None else now + expires_in_s
        file = File(id, tenant, filename, mime_type, incoming.size_bytes, now, expires_at)
        await asyncio.to_thread(incoming.sync)

        def keep(connection: sqlite3.Connection) -> None:
            file_rows.add(connection, file)
            self._blobs.keep(incoming, id)

        try:
            await self._database.write(keep)  # both or neither, even if nobody waits for it
        except Exception:
            await asyncio.to_thread(self._blobs.remove, id)
            raise
        return file

    async def get(self, tenant: str, id: str) -> File:
        """One file. Raises NotFound, with error code `file_expired` if it was there."""
        return await self._database.read(lambda c: file_rows.get(c, tenant, id, self._clock()))

    async def find(self, tenant: str, ids: Sequence[str]) -> list[File]:
        """Those of `ids` that are there, newest first."""
        return await self._database.read(lambda c: file_rows.find(c, tenant, ids, self._clock()))

    async def page(
        self, tenant: str, *, limit: int, below: int = NEWEST
    ) -> tuple[list[File], int | None]:
        """At most `limit` files, newest first; `below` of the next page, None if there is none."""
        return await self._database.read(
            lambda c: file_rows.page(c, tenant, limit, below, self._clock())
        )

    async def read(self, tenant: str, id: str) -> bytes:
        """All of a file. Raises NotFound."""
        await self.get(tenant, id)
        try:
            return await asyncio.to_thread(self._blobs.read, id)
        except FileNotFoundError:  # deleted meanwhile
            raise NotFound("No file has that id.") from None

    async def delete(self, tenant: str, id: str) -> None:
        """Forget a file. Raises NotFound, StoreFull."""
        await self._database.write(lambda c: file_rows.delete(c, tenant, id, self._clock()))
        await asyncio.to_thread(self._blobs.remove, id)

    async def sweep(self) -> None:
        """After a crash: remove bytes that are no file."""
        ids = await self._database.read(file_rows.ids_with_bytes)
        await asyncio.to_thread(self._blobs.sweep, ids)

    async def expire(self) -> None:
        """Drop the bytes of what is too old by the clock. Raises StoreFull."""
        now = self._clock()
        for id in await self._database.write(lambda c: file_rows.expire(c, now)):
            await asyncio.to_thread(self._blobs.remove, id)
