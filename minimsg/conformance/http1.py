"""One HTTP/1.1 response, read from its bytes as they come. Source: RFC 9112.

Strict where a client depends on it: a body that is shorter than it says is not complete.
Knows bytes; sockets are in `wire.py`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final

CRLF: Final = b"\r\n"
BODILESS: Final = (204, 304)


@dataclass
class Response:
    """Grows with `push`. Invariant: `head` is whole before there is any body."""

    is_head: bool = False  # answers a HEAD request: whatever it says, no body follows
    status: int | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)  # names in lower case
    body: bytes = b""
    is_complete: bool = False
    fault: str | None = None  # what is wrong with the bytes themselves
    rest: bytes = b""  # not read yet; what follows a complete response

    def push(self, data: bytes) -> None:
        """More bytes of the connection."""
        self.rest += data
        while self.status is None and b"\r\n\r\n" in self.rest:
            self._read_head()
        if self.status is not None and not self.is_complete:
            self._read_body()

    def flush(self) -> None:
        """The connection has ended; so has a body without a length."""
        if self.status is not None and self._ends_with_connection:
            self.is_complete = True
        if not self.is_complete and self.fault is None:
            part = "in the body" if self.status is not None else "before the end of the head"
            self.fault = f"the connection ended {part}"

    def header(self, name: str) -> str | None:
        """The value of a header; several are joined by a comma."""
        values = [value for key, value in self.headers if key == name]
        return ", ".join(values) if values else None

    def content(self) -> bytes:
        """The body without its Content-Encoding. Raises ValueError where that is not true."""
        encoding = self.header("content-encoding")
        if encoding not in ("gzip", "deflate"):
            return self.body
        try:
            return zlib.decompress(self.body, zlib.MAX_WBITS | (16 if encoding == "gzip" else 0))
        except zlib.error as error:
            raise ValueError(f"the body is not {encoding}: {error}") from error

    def _read_head(self) -> None:
        head, _, self.rest = self.rest.partition(CRLF + CRLF)
        first, *lines = head.decode("latin-1").split("\r\n")
        version, _, code = first.partition(" ")
        if not version.startswith("HTTP/1.") or not code[:3].isdigit():
            self.fault, self.status, self.is_complete = f"{first!r} is no status line", 0, True
            return
        if code.startswith("1"):  # 100 Continue: the answer is still to come
            return
        self.status = int(code[:3])
        pairs = (line.partition(":") for line in lines)
        self.headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]

    def _read_body(self) -> None:
        if self.is_head or self.status in BODILESS:
            self.is_complete = True
        elif self._is_chunked:
            self._read_chunks()
        elif (length := self.header("content-length")) is not None:
            self._read_length(length)
        else:
            self.body, self.rest = self.body + self.rest, b""

    def _read_length(self, length: str) -> None:
        if not length.isdigit():
            self.fault, self.is_complete = f"content-length is {length!r}", True
            return
        wanted = int(length) - len(self.body)
        self.body, self.rest = self.body + self.rest[:wanted], self.rest[wanted:]
        self.is_complete = len(self.body) == int(length)

    def _read_chunks(self) -> None:
        while CRLF in self.rest and not self.is_complete:
            line, _, after = self.rest.partition(CRLF)
            try:
                size = int(line.split(b";")[0], 16)
            except ValueError:
                self.fault, self.is_complete = f"{line!r} is no size of a chunk", True
                return
            if len(after) < size + len(CRLF):
                return  # not here yet, trailers included: those that end a body are empty
            self.body, self.rest = self.body + after[:size], after[size + len(CRLF) :]
            self.is_complete = size == 0

    @property
    def _is_chunked(self) -> bool:
        return "chunked" in (self.header("transfer-encoding") or "").lower()

    @property
    def _ends_with_connection(self) -> bool:
        return not self._is_chunked and self.header("content-length") is None
