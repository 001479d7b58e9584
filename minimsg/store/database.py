"""SQLite beside the event loop: a thread that writes and a thread that reads.

`write` runs a function as one transaction, all of it or nothing, on disk when it returns
(WAL, `synchronous = FULL`); `read` never waits for a writer. Whole functions cross to the
threads, not statements, so no two transactions on a connection can mix, and a hundred
thousand rows go over in one hop: why this is Python's own sqlite3 and not aiosqlite, which
sends every statement by itself. Knows nothing of the tables: `schema.py`, nor of what a
disk may answer: `disk.py`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from minimsg.store import schema
from minimsg.store.disk import Disk

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

BUSY_S: Final = 10.0  # for a copy that is being taken by another program
WAL_BYTES: Final = 64 << 20  # that the log keeps on disk after it was larger


class Database:
    """An open database file."""

    def __init__(self, file: Path, disk: Disk) -> None:
        """Opens or makes it. Raises ConfigError, OSError, sqlite3.Error."""
        self._file, self._disk = file, disk
        if not file.exists():
            schema.create(file)
        self._writer = _connect(file)
        try:
            schema.check(self._writer, file)
            for setting in (
                "journal_mode = WAL",
                "synchronous = FULL",
                "foreign_keys = ON",
                f"journal_size_limit = {WAL_BYTES}",
            ):
                self._writer.execute(f"PRAGMA {setting}")
            self._reader = _connect(file)
            self._place = os.stat(file)
        except BaseException:
            self._writer.close()
            raise
        self._reader.execute("PRAGMA query_only = ON")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="store-read")

    async def write(
        self,
        work: Work[T],
        then: Callable[[T], object] = lambda done: None,
        *,
        is_synced: bool = True,
    ) -> T:
        """`work` as one transaction; what it raises undoes it. Raises StoreFull.

        What is in memory changes in `then`, on the same thread, once it is on disk.

        A caller that is cancelled does not stop it. If it is not `is_synced`, it outlives
        this process only; the next one that is takes it along.
        """
        loop = asyncio.get_running_loop()
        transact = partial(self._transact, work, then, is_synced)
        return await loop.run_in_executor(self._writing, transact)

    async def read(self, work: Work[T]) -> T:
        """What `work` reads, as of one moment."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reading, _in_transaction, self._reader, work)

    def close(self) -> None:
        """End the threads once their work is done, and the files."""
        self._reading.shutdown()
        self._writing.shutdown()
        self._reader.close()
        self._writer.close()

    def _transact(self, work: Work[T], then: Callable[[T], object], is_synced: bool) -> T:
        num_changes = self._writer.total_changes
        with self._disk.writing():
            self._check_place()
            self._writer.execute(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}")
            done = _in_transaction(self._writer, work, "BEGIN IMMEDIATE")
        if self._writer.total_changes != num_changes:
            self._disk.has_taken()
        then(done)
        return done

    def _check_place(self) -> None:
        """SQLite goes on writing to a file that was deleted; nobody would find it again."""
        try:
            is_there = os.path.samestat(os.stat(self._file), self._place)
        except FileNotFoundError:
            is_there = False
        if not is_there:
            why = "it was deleted or replaced while the server runs, which must be started again"
            raise FileNotFoundError(errno.ENOENT, why, str(self._file))


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _in_transaction(connection: sqlite3.Connection, work: Work[T], begin: str = "BEGIN") -> T:
    connection.execute(begin)
    try:
        done = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite may have rolled back by itself
            connection.execute("ROLLBACK")
        raise
    return done
