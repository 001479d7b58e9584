"""A client that writes bytes, not requests, and what it is answered.

`say` does it all on a connection of its own; `connect` leaves writing and reading to the test.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from io import BytesIO
from typing import Any, Protocol, cast

POST = "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Listening(Protocol):
    """A server, in this process or another."""

    @property
    def url(self) -> str:
        """Where it listens."""


def post(body: object) -> bytes:
    """A whole request for /v1/messages."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"{POST}Content-Length: {len(data)}\r\n\r\n".encode() + data


@dataclass(frozen=True)
class Answer:
    """One response; `rest` is what came after it."""

    version: str
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    rest: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body, which must be an object."""
        return cast("dict[str, Any]", json.loads(self.body))


def read_answer(data: bytes) -> Answer:
    """The first response in `data`, as Python's own HTTP client reads it."""
    source = Source(data)
    response = HTTPResponse(cast("Any", source))
    response.begin()
    body = response.read()
    return Answer(
        f"HTTP/{response.version / 10}",
        response.status,
        {name.lower(): value for name, value in response.getheaders()},
        body,
        source.file.read(),
    )


async def next_answer(reader: asyncio.StreamReader) -> Answer:
    """The next response of an open connection, which says how long it is."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"(?i)\ncontent-length: (\d+)", head)
    assert found is not None
    return read_answer(head + await reader.readexactly(int(found[1])))


class Source:
    """Bytes that look like a socket to `HTTPResponse`, which must not close them."""

    def __init__(self, data: bytes) -> None:
        self.file = Unclosed(data)

    def makefile(self, mode: str) -> BytesIO:
        """All that was received."""
        return self.file


class Unclosed(BytesIO):
    """Stays readable behind the end of a response."""

    def close(self) -> None:
        """Nothing: the next response is read from here."""


@asynccontextmanager
async def connect(
    server: Listening,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of its own."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def say(
    server: Listening, *parts: bytes, pause_s: float = 0.05, within_s: float = 10
) -> bytes:
    """All that comes back for `parts` until the server closes; TimeoutError if it does not."""
    received = bytearray()
    async with asyncio.timeout(within_s), connect(server) as (reader, writer):
        reading = asyncio.create_task(collect(reader, received))
        with suppress(ConnectionError):  # closed before all was written
            for index, part in enumerate(parts):
                await asyncio.sleep(pause_s if index else 0)
                writer.write(part)
                await writer.drain()
        await reading
    return bytes(received)


async def collect(reader: asyncio.StreamReader, received: bytearray) -> None:
    """Read into `received` until the connection ends, in whichever way."""
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            received += data
