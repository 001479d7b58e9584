"""Bodies that are too large, too slow, compressed, or not what their headers say."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from minimsg.errors import InvalidRequest, RequestTooLarge
from minimsg.limits import LIMITS, MIB
from minimsg.server import body as body_module
from minimsg.server.body import inflate

from .raw import POST, Answer, connect, next_answer
from .running import PLAIN, Running, ask

BODY = json.dumps(ask(PLAIN, max_tokens=5)).encode()
JSON = {"content-type": "application/json"}
TOO_LARGE = {"error_code": "request_body_too_large_after_decoding"}
Compress = Callable[[bytes], bytes]


async def send(
    running: Running, data: bytes | AsyncIterator[bytes], headers: dict[str, str] = JSON
) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the answer to `data`."""
    body = io.BytesIO(data) if isinstance(data, bytes) else data
    async with running.session.post(
        running.url + "/v1/messages", data=body, headers=headers
    ) as response:
        return response.status, await response.json()


async def send_encoded(running: Running, data: bytes, encoding: str) -> tuple[int, dict[str, Any]]:
    """The same for a body that is compressed, or says so."""
    return await send(running, data, JSON | {"content-encoding": encoding})


async def begin(running: Running, length: int) -> Answer:
    """The answer to a client that announces a body and sends one byte of it."""
    async with connect(running) as (reader, writer):
        writer.write(f"{POST}Content-Length: {length}\r\n\r\n{{".encode())
        return await next_answer(reader)


GZIPPED = gzip.compress(BODY, mtime=0)  # the same bytes for every worker that collects tests
GZIPPED_TWICE = gzip.compress(GZIPPED, mtime=0)


def raw_deflate(data: bytes) -> bytes:
    """Without the header that the standard asks for; some clients mean that."""
    return zlib.compress(data, wbits=-15)


def zeros(num_mib: int) -> bytes:
    """So many MiB of zeros in a thousandth of them, quickly: the same block again and again."""
    stream = zlib.compressobj(9, wbits=31)
    head = stream.compress(bytes(MIB)) + stream.flush(zlib.Z_FULL_FLUSH)
    block = stream.compress(bytes(MIB)) + stream.flush(zlib.Z_FULL_FLUSH)
    return head + block * (num_mib - 1) + stream.flush()


async def test_a_body_of_two_megabytes_is_read(scripted: Running) -> None:
    status, answer = await send(scripted, BODY + b" " * 2 * MIB)
    assert (status, answer["type"]) == (200, "message")


async def test_a_body_over_the_limit_is_refused_before_it_is_read(watched: Running) -> None:
    for length in (LIMITS.body_bytes + 1, 10**18):
        answer = await begin(watched, length)
        assert (answer.status, answer.json["error"]["type"]) == (413, "request_too_large")


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
    answer = await begin(scripted, 100)
    assert answer.status == 408
    assert answer.json["error"]["details"] == {"error_code": "request_body_timeout"}


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("identity", bytes),
    ],
)
async def test_a_compressed_body_is_inflated(
    scripted: Running, encoding: str, compress: Compress
) -> None:
    status, answer = await send_encoded(scripted, compress(BODY), encoding)
    assert (status, answer["type"]) == (200, "message")


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress, raw_deflate])
@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 131_072, 300_000])
@pytest.mark.parametrize("is_random", [False, True])
def test_every_size_comes_out_whole(compress: Compress, size: int, is_random: bool) -> None:
    data = Random(size).randbytes(size) if is_random else b"x" * size
    encoding = "gzip" if compress is gzip.compress else "deflate"
    packed = compress(data)
    assert inflate(packed, encoding) == data
    for wrong in (packed[:-1], packed + b"\0", packed + packed):
        with pytest.raises(InvalidRequest, match="not what it says"):
            inflate(wrong, encoding)


@pytest.mark.parametrize(
    ("encoding", "data", "code"),
    [
        ("gzip", BODY, "request_body_encoding_invalid"),
        ("gzip", b"", "request_body_encoding_invalid"),
        ("gzip", zlib.compress(BODY), "request_body_encoding_invalid"),
        ("gzip", GZIPPED[:-9], "request_body_encoding_invalid"),
        ("gzip", GZIPPED[:-8] + b"checksum", "request_body_encoding_invalid"),
        ("gzip", GZIPPED + b"more", "request_body_encoding_invalid"),
        ("deflate", b"zzzz", "request_body_encoding_invalid"),
        ("deflate", GZIPPED, "request_body_encoding_invalid"),
        ("br", BODY, "request_body_encoding_unsupported"),
        ("zstd", BODY, "request_body_encoding_unsupported"),
        ("gzip, gzip", GZIPPED_TWICE, "request_body_encoding_unsupported"),
        ("gzip, identity", GZIPPED, "request_body_encoding_unsupported"),
    ],
)
async def test_a_body_that_cannot_be_inflated_is_refused_with_its_code(
    watched: Running, encoding: str, data: bytes, code: str
) -> None:
    status, answer = await send_encoded(watched, data, encoding)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert answer["error"]["details"] == {"error_code": code}


async def test_two_headers_of_encodings_are_not_read_as_one(scripted: Running) -> None:
    data = gzip.compress(BODY)
    head = f"{POST}Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"
    async with connect(scripted) as (reader, writer):
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = await next_answer(reader)
    assert answer.json["error"]["details"] == {"error_code": "request_body_encoding_unsupported"}


@pytest.mark.parametrize("num_mib", [33, 50, 10_240])
async def test_a_body_that_inflates_beyond_the_limit_is_413(watched: Running, num_mib: int) -> None:
    status, answer = await send_encoded(watched, zeros(num_mib), "gzip")
    assert (status, answer["error"]["type"]) == (413, "request_too_large")
    assert answer["error"]["details"] == TOO_LARGE


def test_a_bomb_of_48_kilobytes_takes_none_of_the_memory_it_claims() -> None:
    bomb = gzip.compress(bytes(50 * MIB))
    assert len(bomb) < 51_000
    tracemalloc.start()
    try:
        with pytest.raises(RequestTooLarge):
            inflate(bomb, "gzip")
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_as_much_as_the_limit_is_inflated() -> None:
    assert len(inflate(zlib.compress(bytes(LIMITS.body_bytes)), "deflate")) == LIMITS.body_bytes
    with pytest.raises(RequestTooLarge):
        inflate(zlib.compress(bytes(LIMITS.body_bytes + 1)), "deflate")


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", "utf-16le", "nonsense"])
async def test_another_charset_than_utf8_is_refused(scripted: Running, charset: str) -> None:
    headers = {"content-type": f"application/json; charset={charset}"}
    status, answer = await send(scripted, BODY, headers)
    assert status == 400
    assert answer["error"]["details"] == {"error_code": "unsupported_charset"}


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", '"utf8"'])
async def test_utf8_may_be_named(scripted: Running, charset: str) -> None:
    status, _ = await send(scripted, BODY, {"content-type": f"application/json; charset={charset}"})
    assert status == 200
