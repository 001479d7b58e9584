"""Bytes to a server and back over one connection, each piece with its time.

Nothing between the suite and the server: no proxy of the environment, no redirect followed,
no connection used twice. Knows sockets; what the bytes say is in `http1.py`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from minimsg.conformance.http1 import Response
from minimsg.errors import ConfigError

READ_BYTES: Final = 64 * 1024
BETWEEN_PIECES_S: Final = 0.02  # long enough that a server sees two reads
PATIENCE: Final = 0.8  # of the time for an answer: who writes after that is slow, not stuck


@dataclass(frozen=True)
class Address:
    """Where a server listens, and what its paths begin with."""

    host: str
    port: int
    is_tls: bool
    prefix: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Read a base URL. Raises ConfigError."""
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise ConfigError(f"{url!r} is no URL: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is no base URL such as http://127.0.0.1:8080")
        return cls(parts.hostname, port, parts.scheme == "https", parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """As in a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class Piece:
    """Some bytes, and when they went by."""

    at_s: float  # since the connection was asked for
    is_sent: bool
    data: bytes


@dataclass
class Exchange:
    """One connection: what was sent, what came, how it ended."""

    response: Response
    pieces: list[Piece] = field(default_factory=list)
    fault: str | None = None  # no connection, no answer, an answer that is no HTTP
    left: bool = False  # the client hung up, as it was told to
    timeout_s: float | None = None  # of the client, where that ended it

    @property
    def was_flowing(self) -> bool:
        """Whether the client lost patience with a stream that was still being written."""
        written = [p.at_s for p in self.pieces if not p.is_sent and b"_delta" in p.data]
        return self.timeout_s is not None and max(written, default=0.0) > self.timeout_s * PATIENCE

    @property
    def received(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces if not piece.is_sent)

    @property
    def end_s(self) -> float:
        """When the last bytes went by."""
        return self.pieces[-1].at_s if self.pieces else 0.0


async def exchange(
    address: Address,
    pieces: Sequence[bytes],
    *,
    is_head: bool = False,
    leave_after_bytes: int | None = None,
    timeout_s: float = 60.0,
) -> Exchange:
    """Send `pieces`, read the answer to its end; never raises for what the server does."""
    done = Exchange(Response(is_head=is_head))
    started = perf_counter()
    try:
        async with asyncio.timeout(timeout_s):
            await _talk(address, pieces, done, started, leave_after_bytes)
    except TimeoutError:
        done.fault, done.timeout_s = f"no complete answer within {timeout_s:g} s", timeout_s
    except OSError as error:
        done.fault = f"the connection failed: {error.strerror or error}"
    if not done.left:
        done.response.flush()
        done.fault = done.fault or done.response.fault
    return done


async def _talk(
    address: Address,
    pieces: Sequence[bytes],
    done: Exchange,
    started: float,
    leave_after_bytes: int | None,
) -> None:
    context = ssl.create_default_context() if address.is_tls else None
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context)
    try:
        sending = asyncio.create_task(_send(writer, pieces, done, started))
        if leave_after_bytes == 0:
            await sending
            done.left = True
            return
        try:
            await _receive(reader, done, started, leave_after_bytes)
        finally:
            sending.cancel()  # an answer may come before all is sent: then it is the answer
            await asyncio.wait([sending])
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _send(
    writer: asyncio.StreamWriter, pieces: Sequence[bytes], done: Exchange, started: float
) -> None:
    for number, piece in enumerate(pieces):
        if number:
            await asyncio.sleep(BETWEEN_PIECES_S)
        done.pieces.append(Piece(perf_counter() - started, True, piece))
        writer.write(piece)
        try:
            await writer.drain()
        except OSError:  # the server hung up: what it said before that is still to be read
            return


async def _receive(
    reader: asyncio.StreamReader,
    done: Exchange,
    started: float,
    leave_after_bytes: int | None,
) -> None:
    num_received = 0
    while not done.response.is_complete:
        data = await reader.read(READ_BYTES)
        if not data:
            return
        done.pieces.append(Piece(perf_counter() - started, False, data))
        done.response.push(data)
        num_received += len(data)
        if leave_after_bytes is not None and num_received >= leave_after_bytes:
            done.left = True
            return
