"""Bodies that are too large, too slow, compressed, or not what they say."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from minimsg.errors import RequestTooLarge
from minimsg.limits import LIMITS, MIB
from minimsg.server import body as body_module
from minimsg.server.body import INFLATE, inflate

from .running import PLAIN, Running, ask

BODY = json.dumps(ask(PLAIN)).encode()
HEADERS = {"content-type": "application/json"}


async def send(
    running: Running, data: bytes | AsyncIterator[bytes], **headers: str
) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the answer to `data`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = io.BytesIO(data) if isinstance(data, bytes) else data
    async with running.session.post(
        running.url + "/v1/messages", data=body, headers=HEADERS | named
    ) as response:
        return response.status, await response.json()


async def raw(running: Running, data: bytes, *, until_closed: bool = False) -> bytes:
    """What the server says to `data` on a fresh connection."""
    host, port = running.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(data)
        await writer.drain()
        async with asyncio.timeout(5):
            return await (reader.read() if until_closed else reader.read(65_536))
    finally:
        writer.close()


async def test_a_body_of_two_megabytes_is_read(scripted: Running) -> None:
    status, answer = await send(scripted, BODY + b" " * 2 * MIB)
    assert (status, answer["type"]) == (200, "message")


async def test_a_body_over_the_limit_is_refused_before_it_is_read(scripted: Running) -> None:
    head = (
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {LIMITS.body_bytes + 1}\r\n\r\n"
    )
    answer = await raw(scripted, head.encode() + b"{")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"type":"request_too_large"' in answer


async def test_a_body_without_a_length_is_counted_while_it_is_read(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_module, "LIMITS", replace(LIMITS, body_bytes=10_000))

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * 1_000

    status, answer = await send(scripted, pieces())
    assert (status, answer["error"]["type"]) == (413, "request_too_large")
    status, _ = await send(scripted, BODY)
    assert status == 200


async def test_a_body_that_does_not_arrive_is_answered_408(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_module, "LIMITS", replace(LIMITS, body_timeout_s=0.1))
    head = (
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 100\r\n\r\n{"
    )
    answer = await raw(scripted, head.encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"error_code":"request_body_timeout"' in answer


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(BODY)),
        ("GZIP", gzip.compress(BODY)),
        ("deflate", zlib.compress(BODY)),
        ("identity", BODY),
    ],
)
async def test_a_compressed_body_is_inflated(scripted: Running, encoding: str, data: bytes) -> None:
    status, answer = await send(scripted, data, content_encoding=encoding)
    assert (status, answer["type"]) == (200, "message")


@pytest.mark.parametrize(
    ("encoding", "data", "code"),
    [
        ("gzip", BODY, "request_body_encoding_invalid"),
        ("gzip", gzip.compress(BODY)[:-9], "request_body_encoding_invalid"),
        ("gzip", gzip.compress(BODY) + b"more", "request_body_encoding_invalid"),
        ("deflate", b"zzzz", "request_body_encoding_invalid"),
        ("br", BODY, "request_body_encoding_unsupported"),
        ("zstd", BODY, "request_body_encoding_unsupported"),
        ("gzip, gzip", BODY, "request_body_encoding_unsupported"),
    ],
)
async def test_a_body_that_cannot_be_inflated_is_refused_with_its_code(
    scripted: Running, encoding: str, data: bytes, code: str
) -> None:
    status, answer = await send(scripted, data, content_encoding=encoding)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["details"] == {"error_code": code}


async def test_a_small_body_that_inflates_beyond_the_limit_is_413(scripted: Running) -> None:
    bomb = gzip.compress(bytes(50 * MIB))
    assert len(bomb) < 64 * 1024
    status, answer = await send(scripted, bomb, content_encoding="gzip")
    assert (status, answer["error"]["type"]) == (413, "request_too_large")
    code = "request_body_too_large_after_decoding"
    assert answer["error"]["details"] == {"error_code": code}


def test_inflating_stops_at_the_limit() -> None:
    bomb = zlib.compress(bytes(LIMITS.body_bytes + 1))
    with pytest.raises(RequestTooLarge):
        inflate(bomb, INFLATE["deflate"])
    assert len(inflate(zlib.compress(bytes(LIMITS.body_bytes)), INFLATE["deflate"])) == (
        LIMITS.body_bytes
    )


async def test_another_charset_than_utf8_is_refused(scripted: Running) -> None:
    status, answer = await send(scripted, BODY, content_type="application/json; charset=latin-1")
    assert status == 400
    assert answer["error"]["details"] == {"error_code": "unsupported_charset"}
    status, _ = await send(scripted, BODY, content_type="application/json; charset=UTF-8")
    assert status == 200
