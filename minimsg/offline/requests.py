"""A file of requests for message batches, a line each: `{"custom_id": "...", "params": {...}}`.

Read as a stream, so that its size is no concern; what is remembered of it are the ids. A line
that is wrong and has an id will have an `errored` result; one without an id that could be
told apart has nowhere to put a result, so that nothing begins before it is mended.
Blank lines, a byte order mark and Windows' line ends are no faults. Next: `results.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from pydantic_core import from_json

from minimsg.errors import ConfigError, InvalidRequest, RequestError, RequestTooLarge
from minimsg.limits import LIMITS
from minimsg.protocol.batches import CUSTOM_ID, read_request
from minimsg.protocol.dialect import PLAIN
from minimsg.protocol.json_parts import members

MARK: Final = b"\xef\xbb\xbf"  # of byte order, that some editors begin a file with
SPACE: Final = b" \t\r\n"
MAX_FAULTS: Final = 10  # that are told at once
FORM: Final = 'one {"custom_id": "...", "params": {...}} a line'


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank."""

    number: int  # in the file, from 1
    text: bytes  # without the space around it; of one that is too long, its beginning
    custom_id: str | None  # None: none that could be told apart
    params: bytes = b""
    fault: RequestError | None = None  # why there are no params


@dataclass(frozen=True)
class Shard:
    """A part of the requests: each `count`-th, beginning with the `number`-th."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`2/8`. Raises ConfigError."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(f"--shard {text!r}: wanted is i/n, i from 1 to n, such as 2/8")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def takes(self, place: int) -> bool:
        """Whether the request at `place`, from 0, is of this part."""
        return place % self.count == self.number - 1


WHOLE: Final = Shard()


@dataclass
class Scan:
    """What is remembered of a file that was read once."""

    ids: set[str] = field(default_factory=set)  # of the shard
    num_requests: int = 0  # of the whole file
    num_bytes: int = 0  # of all their texts
    digest: str = ""  # of the file, SHA-256


class RequestsFile:
    """The file; it is opened anew each time it is read."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError."""
        if not path.is_file():
            why = "must be a file, which is read twice" if path.exists() else "no such file"
            raise ConfigError(f"{path}: {why}")
        self.path = path

    def scan(self, shard: Shard = WHOLE, *, forgives: bool = False) -> Scan:
        """Read all of it, and refuse what cannot be run.

        `forgives`: lines that are wrong and have an id. Raises ConfigError, naming the lines.
        """
        scan, faults, digest = Scan(), Faults(self.path), hashlib.sha256()
        numbers: dict[str, int] = {}  # the lines of the ids
        num_good = 0
        for line in self._lines(digest):
            num_good += line.fault is None
            if line.custom_id is None or (line.fault and not forgives):
                faults.add(line.number, line.fault)
            elif (first := numbers.setdefault(line.custom_id, line.number)) != line.number:
                faults.add(
                    line.number, f"custom_id {line.custom_id!r} is that of line {first}, too"
                )
            elif line.fault and not num_good:
                faults.hold(line.number, line.fault)
            if line.custom_id is not None and shard.takes(scan.num_requests):
                scan.ids.add(line.custom_id)
            scan.num_requests += 1
            scan.num_bytes += len(line.text)
        faults.check(num_good)
        scan.digest = digest.hexdigest()
        return scan

    def lines(self) -> Iterator[Line]:
        """Every line that is not blank. Raises ConfigError."""
        return self._lines(hashlib.sha256())

    def lines_of(self, ids: Set[str]) -> Iterator[Line]:
        """The lines of `ids`, of a file that was scanned. Raises ConfigError if it has changed."""
        left = set(ids)
        for line in self.lines():
            if line.custom_id in left:
                left.remove(line.custom_id)
                yield line
        if left:
            raise ConfigError(f"{self.path} has changed while it was read; run it again")

    def _lines(self, digest: hashlib._Hash) -> Iterator[Line]:
        try:
            with self.path.open("rb") as file:
                for number, text in _texts(file, digest):
                    yield _line(number, text)
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from error


class Faults:
    """The lines that are wrong, a few of them in words."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown: list[str] = []
        self._held = ""
        self._number = 0

    def add(self, number: int, why: RequestError | str | None) -> None:
        """Line `number` cannot be run."""
        self._number += 1
        if len(self._shown) < MAX_FAULTS:
            self._shown.append(f"{self._path}:{number}: {why}")

    def hold(self, number: int, why: RequestError) -> None:
        """Line `number` is wrong, which only matters if all others are."""
        self._held = self._held or f"{self._path}:{number}: {why}"

    def check(self, num_good: int) -> None:
        """Raises ConfigError if there is a fault, or nothing to run."""
        if not num_good and not self._shown:
            self._shown = [self._held or f"{self._path}: there is no request in it"]
        if not self._shown:
            return
        more = [f"and {self._number - MAX_FAULTS} more"] if self._number > MAX_FAULTS else []
        raise ConfigError("\n".join([*self._shown, *more, f"(wanted is {FORM})"]))


def _texts(file: IO[bytes], digest: hashlib._Hash) -> Iterator[tuple[int, bytes]]:
    """Number and text of each line that is not blank; of a longer one, a byte too much."""
    number = 0
    while text := file.readline(LIMITS.body_bytes + len(SPACE)):
        number += 1
        digest.update(text)
        whole = text
        while not whole.endswith(b"\n") and (whole := file.readline(LIMITS.body_bytes)):
            digest.update(whole)
        if number == 1:
            text = text.removeprefix(MARK)
        if text := text.strip(SPACE):
            yield number, text


def _line(number: int, text: bytes) -> Line:
    if len(text) > LIMITS.body_bytes:
        why = f"Request exceeds the maximum size of {LIMITS.body_bytes} bytes."
        return Line(number, text, _custom_id(text), fault=RequestTooLarge(why))
    try:
        custom_id, params, _ = read_request(text, PLAIN)
    except InvalidRequest as fault:
        return Line(number, text, _custom_id(text), fault=fault)
    return Line(number, text, custom_id, params)


def _custom_id(text: bytes) -> str | None:
    """The id in a line that is wrong, as far as it can be read; the last, as in JSON."""
    found: object = None
    try:
        for key, (start, end) in members(text):
            if key == "custom_id":
                found = from_json(text[start:end])
    except ValueError:
        found = None
    except InvalidRequest:  # behind the id, or before it
        pass
    return found if isinstance(found, str) and re.fullmatch(CUSTOM_ID[1:-1], found) else None
