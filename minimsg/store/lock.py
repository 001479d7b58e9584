"""One server a folder: a lock that the system drops when its process ends, however it ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType

from minimsg.errors import ConfigError


class FolderLock:
    """Holds `folder` until `close`."""

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError if another server holds it, OSError."""
        self._handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(self._handle)
        except (BlockingIOError, PermissionError):
            self.close()
            raise ConfigError(
                f"another server keeps its batches and files in {folder}: stop that one, give "
                "this one a folder of its own with --data-dir, or let it keep nothing with "
                "--no-store"
            ) from None

    def close(self) -> None:
        """Let the next one in."""
        os.close(self._handle)

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


if sys.platform == "win32":
    import msvcrt

    def lock(handle: int) -> None:
        """Lock the file of `handle` until it is closed. Raises OSError if another has."""
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def lock(handle: int) -> None:
        """Lock the file of `handle` until it is closed. Raises OSError if another has."""
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
