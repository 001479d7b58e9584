"""A file of results that grows a line at a time, and that any crash leaves good to go on with.

A line is written whole or is cut off again; one that a crash has torn is dropped at the next
start, and its request runs again. So a custom_id has one line, however often a run begins.
Beside the file lies `NAME.run`, a note of what it was begun from: when that has changed, it
is said. The file is locked while it is written. Knows nothing of who answers.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Final, get_args

from pydantic_core import from_json

from minimsg.errors import ConfigError, DiskFailed
from minimsg.protocol.batches import result_line
from minimsg.store.lock import lock
from minimsg.store.records import ResultKind

logger = logging.getLogger(__name__)

KINDS: Final = get_args(ResultKind)
START: Final = b'{"custom_id":"'  # of every line of ours
READ_BYTES: Final = 1 << 20
# Of file systems that have no locks, as some clusters' have.
NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)
TAKEN: Final = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)


@dataclass(frozen=True)
class Origin:
    """What results are begun from."""

    digest: str  # of the requests
    model: str
    shard: str = "1/1"


class ResultsFile:
    """The file, open and locked. Invariant: it ends with a whole line, or is empty."""

    def __init__(self, path: Path, file: FileIO) -> None:
        self.path = path
        self.done: set[str] = set()  # the ids that have a line
        self.counts: Counter[str] = Counter()  # of the lines, by kind
        self._file = file
        self._end = 0

    @classmethod
    @contextmanager
    def open(
        cls, path: Path, requests: Path, ids: Set[str], origin: Origin, *, keeps: bool
    ) -> Iterator[ResultsFile]:
        """The results of `ids`, to be completed; on disk when the block ends.

        `keeps`: those that are there stay, although `origin` is not that of them.
        Raises ConfigError, DiskFailed.
        """
        for place in (path, _note_of(path)):
            if place.exists() and os.path.samefile(place, requests):
                why = f"{place} has the requests: name another file for the results"
                raise ConfigError(why)
        with _open(path) as file:
            results = cls(path, file)
            _lock(path, file)
            results._read(ids)
            results._note(origin, keeps=keeps)
            try:
                yield results
            finally:
                results.sync()

    def append(self, custom_id: str, kind: ResultKind, body: bytes | None) -> None:
        """Add a line. Raises DiskFailed: then nothing was added."""
        line = memoryview(result_line(custom_id, kind, body))
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            with suppress(OSError):  # of a torn line the next start gets rid
                self._file.truncate(self._end)
            raise self._failed(error) from error
        self._end = self._file.tell()
        self.done.add(custom_id)
        self.counts[kind] += 1

    def sync(self) -> None:
        """Return once all lines survive a loss of power. Raises DiskFailed."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> DiskFailed:
        return DiskFailed(
            f"{self.path}: {error.strerror}; {len(self.done)} results are there and whole, and "
            "the same command goes on from them"
        )

    def _read(self, ids: Set[str]) -> None:
        """Learn what is done, and drop a torn line. Raises ConfigError: not results of `ids`."""
        with open(self._file.fileno(), "rb", READ_BYTES, closefd=False) as lines:
            lines.seek(0)
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n") and _is_torn(line):
                    logger.warning("%s: line %d was torn and is redone", self.path, number)
                    break
                self._take(number, line, ids)
        self._file.truncate(self._end)

    def _take(self, number: int, line: bytes, ids: Set[str]) -> None:
        custom_id, kind = self._result(number, line)
        if custom_id in self.done:
            raise self._foreign(number, f"a second result of {custom_id!r}")
        if custom_id not in ids:
            raise self._foreign(number, f"a result of {custom_id!r}, which is not requested")
        self._end += len(line)
        self.done.add(custom_id)
        self.counts[kind] += 1

    def _result(self, number: int, line: bytes) -> tuple[str, str]:
        try:
            found = from_json(line)
            custom_id, kind = found["custom_id"], found["result"]["type"]
        except (ValueError, TypeError, KeyError):
            raise self._foreign(number, "no result") from None
        if not isinstance(custom_id, str) or kind not in KINDS or not line.endswith(b"\n"):
            raise self._foreign(number, "no result")
        return custom_id, kind

    def _foreign(self, number: int, why: str) -> ConfigError:
        return ConfigError(
            f"{self.path}:{number}: {why}: these are not results of these requests, or of another "
            "shard of them. Name another file with -o, or move this one away"
        )

    def _note(self, origin: Origin, *, keeps: bool) -> None:
        """Look at the note of an earlier run, and leave one. Raises ConfigError."""
        note = _note_of(self.path)
        if (before := _noted(note)) == origin:
            return  # and a full disk, or a folder that is read-only now, takes nothing away
        if self.done and before is not None and not keeps:
            raise ConfigError(
                f"{self.path} was begun from {_difference(before, origin)}. Name another file "
                "with -o, move this one away, or keep its results and add the others with --keep"
            )
        try:
            note.write_text(json.dumps(asdict(origin)) + "\n")
        except OSError as error:
            raise ConfigError(f"cannot write {note}: {error.strerror}") from error


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + ".run")


def _open(path: Path) -> FileIO:
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is no file: results go where they can be read again")
    try:
        return FileIO(path, "a+")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _lock(path: Path, file: FileIO) -> None:
    try:
        lock(file.fileno())
    except OSError as error:
        if error.errno in NO_LOCKS:
            logger.warning("%s: no locks here, so nothing else may write it", path)
            return
        if error.errno not in TAKEN:
            raise ConfigError(f"cannot lock {path}: {error.strerror}") from error
        why = f"another process is writing {path}: let it end, or name another file with -o"
        raise ConfigError(why) from None


def _is_torn(line: bytes) -> bool:
    """Whether this can be the beginning of a line of ours, or what a loss of power left of it."""
    begun = line.rstrip(b"\0")
    return begun.startswith(START) or START.startswith(begun)


def _noted(note: Path) -> Origin | None:
    """What an earlier run has noted; None if nothing that can be read."""
    with suppress(OSError, ValueError, TypeError):
        return Origin(**json.loads(note.read_text()))
    return None


def _difference(before: Origin, now: Origin) -> str:
    if before.model != now.model:
        return f"the model {before.model}, not {now.model}"
    if before.shard != now.shard:
        return f"shard {before.shard} of the requests, not {now.shard}"
    return "other requests: the file of requests has changed since"
