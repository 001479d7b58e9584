"""A folder beside a model's place, in which the model is put together before it is shown.

While it is filled its lock file is locked, which the system undoes however the process
ends: so what is locked is somebody's work, however long a download keeps silent, and
what is not was left by a killed process and goes at once. Where there are no such locks
(Windows, some network disks) a folder counts as left once nothing in it has changed for
`STALE_S`. Knows nothing of models; `store.py` fills the folder and publishes it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

HAS_LOCKS: Final = sys.platform != "win32"
STAGING: Final = ".partial-"
LOCK: Final = "lock"
STALE_S: Final = 3600.0


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """A new folder beside `target`, removed in the end; what killed processes left goes first."""
    _sweep(target.parent)
    work = Path(tempfile.mkdtemp(prefix=f"{STAGING}{target.name}-", dir=target.parent))
    try:
        with _locked(work):
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _locked(work: Path) -> Iterator[None]:
    """Hold the lock of `work`. The lock file gets its name when it is locked, not before."""
    unnamed = work / f"{LOCK}-new"
    with unnamed.open("wb") as file:
        if HAS_LOCKS and _lock(file.fileno()):
            unnamed.rename(work / LOCK)
        yield


def _lock(file: int) -> bool:
    """Whether the lock was free, and is ours now until the file is closed."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody's, or a disk without locks
        return False
    return True


def _sweep(parent: Path) -> None:
    for work in parent.glob(f"{STAGING}*"):
        with suppress(OSError):  # another process is just finishing with it
            if _is_abandoned(work):
                shutil.rmtree(work, ignore_errors=True)


def _is_abandoned(work: Path) -> bool:
    if HAS_LOCKS and (work / LOCK).exists():
        with (work / LOCK).open("rb") as file:
            return _lock(file.fileno())
    newest = max(path.lstat().st_mtime for path in (work, *work.rglob("*")))
    return time.time() - newest > STALE_S
