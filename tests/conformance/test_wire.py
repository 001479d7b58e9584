"""Responses are read as they come, whatever the cuts; what is wrong with the bytes is said."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Sequence

import pytest

from minimsg.conformance.http1 import Response
from minimsg.conformance.wire import Address, exchange
from minimsg.errors import ConfigError

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\n\r\n"
)
UNTIL_CLOSE = b"HTTP/1.1 200 OK\r\n\r\nhello"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


@pytest.mark.parametrize("data", [PLAIN, CHUNKED, UNTIL_CLOSE, CONTINUED])
def test_a_response_is_the_same_wherever_it_is_cut(data: bytes) -> None:
    for cut in range(len(data) + 1):
        response = Response()
        response.push(data[:cut])
        response.push(data[cut:])
        response.flush()
        assert (response.status, response.body, response.fault) == (200, b"hello", None), cut


@pytest.mark.parametrize("data", [PLAIN, CHUNKED])
def test_a_response_that_is_cut_short_is_not_complete(data: bytes) -> None:
    for end in range(1, len(data)):
        response = Response()
        response.push(data[:end])
        response.flush()
        assert response.fault is not None, end
        assert not response.is_complete


def test_headers_of_one_name_are_joined() -> None:
    response = Response()
    response.push(PLAIN)
    assert response.header("x-a") == "1, 2"
    assert response.header("x-b") is None


@pytest.mark.parametrize("data", [b"hello\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"])
def test_what_is_no_http_is_a_fault(data: bytes) -> None:
    response = Response()
    response.push(data)
    assert response.fault is not None


def test_an_answer_to_head_has_no_body() -> None:
    response = Response(is_head=True)
    response.push(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    assert response.is_complete


def test_a_compressed_body_is_unpacked_and_a_false_one_is_told() -> None:
    response = Response(headers=[("content-encoding", "gzip")], body=gzip.compress(b"hello"))
    assert response.content() == b"hello"
    response.body = b"hello"
    with pytest.raises(ValueError, match="not gzip"):
        response.content()


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://a", "http://", "http://a:port"])
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="URL"):
        Address.of(url)


async def ask_one_that_says(pieces: Sequence[bytes], **how: float | int) -> tuple[object, ...]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if pieces and pieces[-1] == b"":  # says no more, and stays
            await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = Address("127.0.0.1", port, False, "")
    done = await exchange(address, [b"GET / HTTP/1.1\r\n\r\n"], **how)  # type: ignore[arg-type]
    server.close()
    return done.response.status, done.response.body, done.fault, done.left


async def test_both_directions_are_kept() -> None:
    assert await ask_one_that_says([PLAIN]) == (200, b"hello", None, False)


async def test_a_server_that_hangs_up_or_goes_quiet_is_a_fault() -> None:
    for pieces, words in (([], "ended before"), ([PLAIN[:-1]], "ended in the body")):
        assert words in str((await ask_one_that_says(pieces))[2])
    assert "within 0.2 s" in str((await ask_one_that_says([PLAIN[:9], b""], timeout_s=0.2))[2])


async def test_hanging_up_after_some_bytes_is_no_fault() -> None:
    assert (await ask_one_that_says([PLAIN, b""], leave_after_bytes=5))[2:] == (None, True)


async def test_no_server_is_a_fault() -> None:
    done = await exchange(Address("127.0.0.1", 9, False, ""), [b"GET / HTTP/1.1\r\n\r\n"])
    assert "failed" in str(done.fault)


@pytest.mark.parametrize(
    ("piece", "was_flowing"), [(b"content_block_delta", True), (b"ping", False)]
)
async def test_who_still_writes_when_patience_ends_is_slow_and_not_stuck(
    piece: bytes, was_flowing: bool
) -> None:
    ended = asyncio.Event()

    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(piece)
            await asyncio.sleep(0.01)
        ended.set()

    server = await asyncio.start_server(write, "127.0.0.1", 0)
    address = Address("127.0.0.1", server.sockets[0].getsockname()[1], False, "")
    done = await exchange(address, [b"GET / HTTP/1.1\r\n\r\n"], timeout_s=0.2)
    server.close()
    await ended.wait()
    assert done.was_flowing == was_flowing
    assert "within 0.2 s" in str(done.fault)
