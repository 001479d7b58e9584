"""SQLite beside the event loop: a thread that writes and a thread that reads.

`write` runs a function as one transaction, all of it or nothing, on disk when it returns
(WAL, `synchronous = FULL`); `read` never waits for a writer. Whole functions cross to the
threads, not statements, so no two transactions on a connection can mix, and a hundred
thousand rows go over in one hop: why this is Python's own sqlite3 and not aiosqlite, which
sends every statement by itself. Knows nothing of the tables: `schema.py`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from minimsg.errors import StoreFull
from minimsg.store import schema

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

BUSY_S: Final = 10.0  # for a copy that is being taken by another program
WAL_BYTES: Final = 64 << 20  # that the log keeps on disk after it was larger
FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
# SQLite says FULL for ENOSPC only; of the others it says which call failed.
FULL_CODES: Final = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
)


class Database:
    """An open database file."""

    def __init__(self, file: Path) -> None:
        """Opens or makes it. Raises ConfigError, OSError, sqlite3.Error."""
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
        except BaseException:
            self._writer.close()
            raise
        self._reader.execute("PRAGMA query_only = ON")
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="store-read")

    async def write(self, work: Work[T]) -> T:
        """`work` as one transaction; what it raises undoes it. Raises StoreFull.

        A caller that is cancelled does not stop it.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writing, self._transact, work)

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

    def _transact(self, work: Work[T]) -> T:
        with telling_full():
            return _in_transaction(self._writer, work, "BEGIN IMMEDIATE")


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


@contextmanager
def telling_full() -> Iterator[None]:
    """Let a disk that takes no more be a StoreFull, whoever found out."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        is_full = (
            error.errno in FULL_ERRNOS
            if isinstance(error, OSError)
            else error.sqlite_errorcode in FULL_CODES
        )
        if not is_full:
            raise
        logger.warning("the disk of the store takes no more: %s", error)
        raise StoreFull from error
