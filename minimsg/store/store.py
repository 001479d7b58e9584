"""The store as the server sees it: batches and files, each call on disk when it returns.

All ids come from the server; a tenant's are unknown to every other. What runs is claimed
in memory: `next_items` claims, `finish_item` and `release_items` end that, and so does a
crash. Invariant: `_claims` changes on the writing thread only.
Next: `batches.py`, `waiting.py`, and for files `files.py`.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

from minimsg.errors import ConfigError, StoreFull
from minimsg.store import batches, waiting
from minimsg.store.blobs import Blobs
from minimsg.store.database import Database
from minimsg.store.disk import Disk
from minimsg.store.figures import figures
from minimsg.store.files import Files
from minimsg.store.lock import FolderLock
from minimsg.store.records import Batch, Figures, Item, NewItem, NotRunKind, Result, ResultKind

DATABASE: Final = "store.sqlite"
PART_ITEMS, PART_BYTES = 1_000, 4 << 20  # of a batch that is being made, for which others wait


class Store:
    """Batches and files in `folder`; None: in a folder that ends with the server."""

    def __init__(self, folder: Path | None, clock: Callable[[], float] = time.time) -> None:
        self._given = folder
        self.clock = clock
        self._claims = waiting.Claims()
        self._making: set[str] = set()  # batches that nobody may see yet
        self._stack = ExitStack()
        self.folder: Path  # these four once it is open
        self.disk: Disk
        self._database: Database
        self.files: Files

    @property
    def is_there(self) -> bool:
        """Whether an earlier server has left a folder."""
        return self._given is not None and self._given.exists()

    async def open(self) -> None:
        """Take the folder, and up where the last server stopped; `tidy` does the rest.

        Raises ConfigError: another server has it, it cannot be written, or what is in it
        is damaged, not ours or newer.
        """
        try:
            await asyncio.to_thread(self._open)
            await self._database.write(lambda c: None)  # to see that it can be written to
            await self.files.sweep()
        except (OSError, sqlite3.Error, StoreFull) as error:
            await self.close()
            where = self._given or "a temporary folder"
            why = f"cannot keep batches and files in {where}: {error.__cause__ or error}"
            raise ConfigError(why) from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Put back what runs, and let another server have the folder."""
        if self._claims.items:
            with suppress(StoreFull):  # then it counts as having died
                await self.release_items(list(self._claims.items.values()))
        await asyncio.to_thread(self._stack.close)

    async def create_batch(
        self, tenant: str, id: str, dialect: bytes, items: Iterable[NewItem]
    ) -> Batch:
        """Keep a new batch; `items` is read in threads, a part at a time.

        Seen by nobody before it is whole. What `items` raises is raised here, and nothing
        is kept. Raises StoreFull.
        """
        now, num_items, left = self.clock(), 0, iter(items)
        self._making.add(id)
        try:
            await self._database.write(lambda c: batches.begin(c, tenant, id, dialect, now))
            while part := await asyncio.to_thread(_next_part, left):
                await self._database.write(
                    partial(batches.extend, id=id, start=num_items, items=part)
                )
                num_items += len(part)
            return await self._database.write(lambda c: batches.complete(c, tenant, id, num_items))
        except BaseException:
            with suppress(StoreFull):  # `tidy` drops it then
                await self._drop(id)
            raise
        finally:
            self._making.discard(id)

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
        """Begin no more of it; the batch as it is while what waits is being canceled.

        Raises NotFound, InvalidRequest if it has ended, StoreFull.
        """
        now = self.clock()
        batch = await self._database.write(lambda c: batches.cancel(c, tenant, id, now))
        await self._end(id, "canceled")
        return batch

    async def delete_batch(self, tenant: str, id: str) -> None:
        """Forget it. Raises NotFound, InvalidRequest if it has not ended, StoreFull."""
        await self._database.write(lambda c: batches.delete(c, tenant, id))
        await self._drop(id)

    async def next_items(self, num_items: int) -> list[Item]:
        """Claim at most `num_items` requests to run, those whose turn it is. Raises StoreFull."""
        items: list[Item] = []
        while len(items) < num_items:
            # Not synced: it must be known when this process dies, not when the machine does.
            item = await self._database.write(
                lambda c: waiting.begin(c, self._claims), self._claims.add, is_synced=False
            )
            if item is None:
                break
            items.append(item)
        return items

    async def release_items(self, items: Collection[Item]) -> None:
        """Put claimed requests back: nothing died of them. Raises StoreFull."""
        keys = [(item.batch_id, item.custom_id) for item in items]
        await self._database.write(
            lambda c: waiting.release(c, items), lambda _: self._claims.remove(keys)
        )

    async def finish_item(
        self, batch_id: str, custom_id: str, kind: ResultKind, result: bytes
    ) -> bool:
        """Keep a result; False if there was one already, which stays.

        Raises StoreFull: the request is still claimed, and this can be tried again.
        """
        key, now = (batch_id, custom_id), self.clock()
        return await self._database.write(
            lambda c: batches.finish(c, key, kind, result, now),
            lambda _: self._claims.remove([key]),
        )

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

    @property
    def num_running(self) -> int:
        """Requests of batches that are claimed."""
        return len(self._claims.items)

    async def figures(self) -> Figures:
        """How much there is."""
        return await self._database.read(figures)

    async def tidy(self) -> None:
        """End and drop what is canceled, too old by the clock, or seen by nobody. Raises StoreFull.

        To be called now and then; goes on where a crash or a client that left has stopped it.
        """
        now = self.clock()
        for id, kind in await self._database.read(lambda c: batches.to_end(c, now)):
            await self._end(id, kind)
        await self._database.write(lambda c: batches.archive(c, now))
        for id in await self._database.read(batches.to_drop):
            if id not in self._making:
                await self._drop(id)
        await self.files.expire()

    async def _end(self, id: str, kind: NotRunKind) -> None:
        now = self.clock()
        while await self._database.write(
            lambda c: batches.end_part(c, id, kind, self._claims.items.keys(), PART_ITEMS, now)
        ):
            pass

    async def _drop(self, id: str) -> None:
        while await self._database.write(lambda c: batches.drop_part(c, id, PART_ITEMS)):
            pass

    def _open(self) -> None:
        folder = self.folder = self._given or Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="minimsg-"))
        )
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # prompts are nobody else's
        self._stack.enter_context(FolderLock(folder))
        self.disk = Disk(folder)
        self._database = Database(folder / DATABASE, self.disk)
        self._stack.callback(self._database.close)
        self.files = Files(self._database, Blobs(folder, self.disk), lambda: self.clock())


def _next_part(items: Iterator[NewItem]) -> list[NewItem]:
    part: list[NewItem] = []
    num_bytes = 0
    for item in items:
        part.append(item)
        num_bytes += len(item.params)
        if len(part) == PART_ITEMS or num_bytes >= PART_BYTES:
            break
    return part
