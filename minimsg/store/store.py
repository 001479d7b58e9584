"""The store as the server sees it: batches and files, each call on disk when it returns.

All ids come from the server; a tenant's are unknown to every other. What runs is claimed
in memory: `next_items` claims, `finish_item` and `release_items` end that, and so does a
crash. Invariant: `_claimed` changes on the writing thread only.
Next: `batches.py`, and for files `files.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from minimsg.errors import ConfigError, StoreFull
from minimsg.store import batches
from minimsg.store.blobs import Blobs
from minimsg.store.database import Database
from minimsg.store.files import Files
from minimsg.store.lock import FolderLock
from minimsg.store.records import Batch, Item, NewItem, Result, ResultKind

DATABASE: Final = "store.sqlite"


class Store:
    """Batches and files in `folder`; None: in a folder that ends with the server."""

    def __init__(self, folder: Path | None, clock: Callable[[], float] = time.time) -> None:
        self._given = folder
        self.clock = clock
        self._claimed: set[batches.Key] = set()
        self._stack = ExitStack()
        self.folder: Path  # these three once it is open
        self._database: Database
        self.files: Files

    @property
    def is_there(self) -> bool:
        """Whether an earlier server has left a folder."""
        return self._given is not None and self._given.exists()

    async def open(self) -> None:
        """Take the folder, and up where the last server stopped.

        Raises ConfigError: another server has it, it cannot be written, or what is in it
        is damaged, not ours or newer.
        """
        try:
            await asyncio.to_thread(self._open)
            await self._database.write(lambda c: batches.end_canceled(c, self.clock()))
            await self.files.sweep()
        except (OSError, sqlite3.Error, StoreFull) as error:
            await self.close()
            where = self._given or "a temporary folder"
            why = f"cannot keep batches and files in {where}: {error}"
            raise ConfigError(why) from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what was begun, and let another server have the folder."""
        await asyncio.to_thread(self._stack.close)

    async def create_batch(
        self, tenant: str, id: str, dialect: bytes, items: Iterable[NewItem]
    ) -> Batch:
        """Keep a new batch; `items` is read on the writing thread, one by one.

        What `items` raises is raised here, and nothing is kept. Raises StoreFull.
        """
        now = self.clock()
        return await self._database.write(
            lambda c: batches.create(c, tenant, id, dialect, items, now)
        )

    async def get_batch(self, tenant: str, id: str) -> Batch:
        """One batch. Raises NotFound."""
        return await self._database.read(lambda c: batches.get(c, tenant, id))

    async def list_batches(
        self,
        tenant: str,
        *,
        limit: int,
        after_id: str | None = None,
        before_id: str | None = None,
    ) -> tuple[list[Batch], bool]:
        """A page, newest first, and whether there is more. Raises InvalidRequest: the cursor."""
        return await self._database.read(
            lambda c: batches.page(c, tenant, limit, after_id, before_id)
        )

    async def cancel_batch(self, tenant: str, id: str) -> Batch:
        """Cancel what does not run yet. Raises NotFound, InvalidRequest if it has ended."""
        now = self.clock()
        return await self._database.write(
            lambda c: batches.cancel(c, tenant, id, self._claimed, now)
        )

    async def delete_batch(self, tenant: str, id: str) -> None:
        """Forget it. Raises NotFound, InvalidRequest if it has not ended."""
        await self._database.write(lambda c: batches.delete(c, tenant, id))

    async def next_items(self, num_items: int) -> list[Item]:
        """Claim at most `num_items` requests to run, the oldest first."""

        def claim(connection: sqlite3.Connection) -> list[Item]:
            items = list(batches.waiting(connection, num_items, self._claimed))
            self._claimed |= {(item.batch_id, item.custom_id) for item in items}
            return items

        return await self._database.write(claim)

    async def release_items(self, items: Iterable[Item]) -> None:
        """Put claimed requests back: they did not run to their end."""
        keys = {(item.batch_id, item.custom_id) for item in items}
        await self._database.write(lambda c: self._claimed.difference_update(keys))

    async def finish_item(
        self, batch_id: str, custom_id: str, kind: ResultKind, result: bytes
    ) -> bool:
        """Keep a result; False if there was one already, which stays.

        Raises StoreFull: the request is still claimed, and this can be tried again.
        """
        key, now = (batch_id, custom_id), self.clock()
        is_first = await self._database.write(lambda c: batches.finish(c, key, kind, result, now))
        await self._database.write(lambda c: self._claimed.discard(key))
        return is_first

    async def results(self, batch_id: str) -> AsyncIterator[Result]:
        """The results there are, in the order of the requests, a bounded number in memory.

        Raises NotFound when the batch is deleted meanwhile.
        """
        place = -1
        while True:
            page, place = await self._database.read(
                partial(batches.results, id=batch_id, after=place)
            )
            if not page:
                return
            for result in page:
                yield result

    async def expire(self) -> None:
        """End and drop what is too old by the clock. Raises StoreFull."""
        now = self.clock()
        await self._database.write(lambda c: batches.expire(c, self._claimed, now))
        await self.files.expire()

    def _open(self) -> None:
        folder = self.folder = self._given or Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="minimsg-"))
        )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # prompts are nobody else's
        self._stack.enter_context(FolderLock(folder))
        self._database = Database(folder / DATABASE)
        self._stack.callback(self._database.close)
        self.files = Files(self._database, Blobs(folder), lambda: self.clock())
