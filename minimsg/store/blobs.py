"""The bytes of files, in a folder, under names that the server makes: a file's id.

    incoming/NAME   is being received; swept at the next start
    files/ID        whole: synced to disk before it got its name

No name and no path ever holds a word that a client sent. Blocking; `files.py` calls it in
threads. Knows nothing of tenants or rows.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Set
from io import FileIO
from pathlib import Path
from threading import Lock

from minimsg.store.disk import Disk


class Incoming:
    """A file that is being received."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._disk = disk
        self._file = FileIO(path, "x")  # no buffer that closing would have to write
        self._lock = Lock()  # a thread may still write when whoever waited for it has gone
        self.path = path
        self.size_bytes = 0

    def write(self, data: bytes) -> None:
        """Append. Raises StoreFull."""
        rest = memoryview(data)
        with self._lock, self._disk.writing():
            while rest:
                rest = rest[self._file.write(rest) :]
        self.size_bytes += len(data)

    def sync(self) -> None:
        """Return once all of it is on disk. Raises StoreFull."""
        with self._lock, self._disk.writing():
            os.fsync(self._file.fileno())

    def discard(self) -> None:
        """Close it, and remove it unless it was kept."""
        with self._lock:
            self._file.close()
        self.path.unlink(missing_ok=True)


class Blobs:
    """The folder with the bytes of all files."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        """Raises OSError."""
        self._disk = disk
        self._incoming, self._files = folder / "incoming", folder / "files"
        for place in (self._incoming, self._files):
            place.mkdir(exist_ok=True)

    def sweep(self, ids: Set[str]) -> None:
        """Remove what a crash has left: what was received in part, and what is not of `ids`."""
        for path in (*self._incoming.iterdir(), *self._files.iterdir()):
            if path.parent == self._incoming or path.name not in ids:
                path.unlink()

    def receive(self) -> Incoming:
        """A new, empty file. Raises StoreFull."""
        path = self._incoming / secrets.token_hex(16)
        with self._disk.writing():
            return Incoming(path, self._disk)

    def keep(self, incoming: Incoming, id: str) -> None:
        """Let what was received and synced be the file `id`. Raises StoreFull."""
        with self._disk.writing():
            os.replace(incoming.path, self._files / id)
            _sync_folder(self._files)

    def read(self, id: str) -> bytes:
        """All of a file. Raises OSError."""
        return (self._files / id).read_bytes()

    def remove(self, id: str) -> None:
        """Forget the bytes of `id`, if there are any."""
        (self._files / id).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
