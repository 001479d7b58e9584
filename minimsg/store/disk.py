"""What the disk beneath a store answers: it takes what is written, or it takes no more.

Full, read-only, failing or gone is the same to a client (`StoreFull`), and to whoever runs
message batches: wait. Says in the log when that changes. Used from several threads.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from minimsg.errors import StoreFull

logger = logging.getLogger(__name__)

ERRNOS: Final = frozenset(
    {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOENT}
)
# SQLite says FULL for ENOSPC only; the others are errors of the call that failed.
CODES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,  # another program has held it for long
    }
)


class Disk:
    """The disk that holds `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.num_failures = 0
        self.takes_writes = True  # as of the latest

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Let what the disk cannot do be a StoreFull, whoever found out."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:
            if not _is_the_disks(error):
                raise
            self._has_refused(error)
            raise StoreFull from error

    def has_taken(self) -> None:
        """Something was written."""
        if not self.takes_writes:
            logger.warning("%s can be written to again", self._folder)
        self.takes_writes = True

    def _has_refused(self, error: Exception) -> None:
        if self.takes_writes:
            logger.warning(
                "%s takes no more: %s; message batches wait, uploads are refused",
                self._folder,
                error,
            )
        self.takes_writes = False
        self.num_failures += 1


def _is_the_disks(error: OSError | sqlite3.OperationalError) -> bool:
    if isinstance(error, OSError):
        return error.errno in ERRNOS
    return error.sqlite_errorcode & 0xFF in CODES  # what is above tells which call it was
