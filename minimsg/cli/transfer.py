"""Files on their way to a server of message batches and back, and the wait between.

Requests are looked at before anything is sent, and sent as a stream; results are checked
against the batch's own counts, and a file of them is there whole or not at all.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import click

from minimsg.cli.batch_words import Json, one_line
from minimsg.cli.remote import Remote, Unreachable
from minimsg.errors import ConfigError, DiskFailed
from minimsg.limits import LIMITS
from minimsg.offline.requests import RequestsFile
from minimsg.text.control import escape

START: Final = b'{"requests":['
END: Final = b"]}"
POLL_S: Final = (0.5, 10.0)  # at first, and at most: twice as long each time
LINE_S: Final = 60.0  # between two lines that say the same
PATIENCE_S: Final = 300.0  # with a server that does not answer


@dataclass(frozen=True)
class Upload:
    """A file of requests that is good to be sent."""

    file: RequestsFile
    num_bytes: int  # of the body

    @classmethod
    def of(cls, path: Path) -> Upload:
        """Look at all of it. Raises ConfigError, naming the lines."""
        file = RequestsFile(path)
        scan = file.scan()
        num_bytes = len(START) + scan.num_bytes + scan.num_requests - 1 + len(END)
        if scan.num_requests > LIMITS.batch_requests or num_bytes > LIMITS.batch_bytes:
            raise ConfigError(
                f"{path}: {scan.num_requests:,} requests and {num_bytes:,} bytes; a batch has at "
                f"most {LIMITS.batch_requests:,} and {LIMITS.batch_bytes:,}: split the file, or "
                "use `minimsg batch run`, which takes any number"
            )
        return cls(file, num_bytes)

    async def body(self) -> AsyncIterator[bytes]:
        """The body that creates the batch. Raises ConfigError if the file has changed."""
        num_left = self.num_bytes - len(END)
        separator = START
        for line in self.file.lines():
            piece = separator + line.text
            num_left -= len(piece)
            if num_left < 0:
                break
            yield piece
            separator = b","
        if num_left:
            raise ConfigError(f"{self.file.path} has changed while it was read; run it again")
        yield END


async def until_ended(remote: Remote, id: str) -> Json:
    """The batch, once it has ended; how it is, is shown. Raises ConfigError."""
    pause, answered_at = POLL_S[0], -PATIENCE_S  # who never answered is not waited for
    with _waiting() as show:
        while True:
            try:
                batch = await remote.batch(id)
            except Unreachable as error:
                if monotonic() - answered_at > PATIENCE_S:
                    raise
                show(str(error))
            else:
                answered_at = monotonic()
                show(one_line(batch))
                if batch.get("processing_status") == "ended":
                    return batch
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_S[1])


async def download(remote: Remote, id: str, output: Path | None) -> None:
    """The results of a batch to `output`, or the standard output.

    Raises ConfigError: it has none, or fewer came than it has; DiskFailed.
    """
    batch = await remote.batch(id)
    if batch.get("processing_status") != "ended":
        raise ConfigError(f"{one_line(batch)}; wait with `minimsg batch show {id} --wait`")
    if batch.get("archived_at"):
        raise ConfigError(f"{id}: its results are gone, as after 29 days")
    with _printed() if output is None else _kept(output) as write:
        num_lines, is_line_open = 0, False
        async for piece in remote.results(id):
            num_lines += piece.count(b"\n")
            is_line_open = not piece.endswith(b"\n")
            write(piece)
        num_lines += is_line_open
        wanted = sum(batch.get("request_counts", {}).values())
        if num_lines != wanted:
            raise ConfigError(f"{id}: {num_lines:,} of {wanted:,} results came; try again")


@contextmanager
def _waiting() -> Iterator[Callable[[str], None]]:
    """What to call with the state: a line that changes, or where there is no terminal, lines."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.markup import escape as unmarked

    with Console(stderr=True).status("asking") as status:
        yield lambda words: status.update(unmarked(words))


class _Lines:
    """Says what is new, and what is not now and then."""

    def __init__(self) -> None:
        self._words = ""
        self._said_at = 0.0

    def __call__(self, words: str) -> None:
        if words != self._words or monotonic() - self._said_at > LINE_S:
            click.echo(words, err=True)
            self._words, self._said_at = words, monotonic()


@contextmanager
def _printed() -> Iterator[Callable[[bytes], object]]:
    """To the standard output; to a terminal, nothing that drives it."""
    decoder = getincrementaldecoder("utf-8")("replace")

    def show(piece: bytes) -> None:
        click.echo("\n".join(map(escape, decoder.decode(piece).split("\n"))), nl=False)

    yield show if sys.stdout.isatty() else sys.stdout.buffer.write
    sys.stdout.flush()


@contextmanager
def _kept(path: Path) -> Iterator[Callable[[bytes], object]]:
    """To a file that gets its name once all is on disk. Raises ConfigError, DiskFailed."""
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path} is no file")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        file = part.open("xb")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    try:
        with file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise DiskFailed(f"{path}: {error.strerror}; nothing of it was kept") from error
    finally:
        part.unlink(missing_ok=True)
