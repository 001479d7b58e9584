"""Bytes that are no request, or hardly one: answered in the envelope, logged in a line, closed.

`UNREADABLE` is what aiohttp itself refuses, with either of its parsers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import string
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest
from aiohttp import http_parser, web_protocol

from .raw import POST, Answer, post, read_answer, say
from .running import PLAIN, TAPES, Running, ask

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03secret"  # how TLS begins


def head(*lines: str, body: str = "{}") -> bytes:
    """A POST with these headers; each input has a word that must not come back."""
    return (
        POST + "".join(f"{line}\r\n" for line in ("X: secret", *lines)) + "\r\n" + body
    ).encode()


CHUNKED = head("Transfer-Encoding: chunked", body="")
UNREADABLE: dict[str, tuple[bytes, int]] = {
    "a length and a coding": (head("Content-Length: 2", "Transfer-Encoding: chunked"), 400),
    "two lengths": (head("Content-Length: 2", "Content-Length: 2"), 400),
    "two other lengths": (head("Content-Length: 2", "Content-Length: 3"), 400),
    "a length with a sign": (head("Content-Length: +2"), 400),
    "a length below zero": (head("Content-Length: -2"), 400),
    "an unknown coding": (head("Transfer-Encoding: xchunked"), 400),
    "chunked twice": (head("Transfer-Encoding: chunked, chunked"), 400),
    "gzip and chunked": (head("Transfer-Encoding: gzip, chunked"), 400),
    "chunked with a Kelvin sign": (head("Transfer-Encoding: chun\u212aed"), 400),
    "two hosts": (head("Host: secret", "Content-Length: 2"), 400),
    "no host": (b"GET /secret HTTP/1.1\r\n\r\n", 400),
    "a long header": (head("Y: " + "secret" * 1_500), 431),
    "a long name of a header": (head("secret" * 1_500 + ": x"), 431),
    "a long request line": (b"GET /" + b"secret" * 1_500 + b" HTTP/1.1\r\n", 431),
    "200 headers": (head(*(f"X-{number}: x" for number in range(200))), 400),
    "a bare line feed": (b"GET /secret HTTP/1.1\nHost: localhost\n\n", 400),
    "an escape sequence": (head("Y: \x1b[31msecret"), 400),
    "a zero byte": (head("Y: \x00secret"), 400),
    "a space before the colon": (head("Y : secret"), 400),
    "a folded header": (head("Y: a", " secret"), 400),
    "an old websocket": (head("Sec-WebSocket-Key1: secret"), 400),
    "TLS": (HELLO, 400),
    "SSH": (b"SSH-2.0-OpenSSH_9.6secret\r\n", 400),
    "HTTP/0.9": (b"GET /secret\r\n\r\n", 400),
    "HTTP/1.7": (b"GET /secret HTTP/1.7\r\nHost: localhost\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nsecret", 400),
    "noise": (Random(1).randbytes(2_000) + b"secret\r\n\r\n", 400),
    "a broken chunk": (CHUNKED + b"6\r\nsecretXX", 400),
    "a chunk of no length": (CHUNKED + b"secret\r\n", 400),
    "100,000 trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"x: secret\r\n" * 100_000 + b"\r\n", 400),
}


@pytest.fixture(params=[http_parser.HttpRequestParser, http_parser.HttpRequestParserPy])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """aiohttp's parser: the one that is used where it could be compiled, and the other."""
    monkeypatch.setattr(web_protocol, "HttpRequestParser", request.param)


def check_refusal(answer: Answer, status: int) -> None:
    """The API's envelope, once, over HTTP/1.1, and nothing of what was sent."""
    assert (answer.version, answer.status) == ("HTTP/1.1", status)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["request-id"] == answer.json["request_id"]
    assert answer.headers["request-id"].startswith("req_")
    assert answer.headers["server"].startswith("minimsg/")
    assert set(answer.json) == {"type", "error", "request_id"}
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert b"secret" not in answer.body
    assert answer.rest == b""


def check_log(caplog: pytest.LogCaptureFixture, answer: Answer) -> None:
    """One line about it, without a byte of the client's and without a traceback."""
    request_id = answer.headers["request-id"]
    lines = [line for line in caplog.text.splitlines() if request_id in line]
    assert len(lines) == 1
    assert f" {answer.status}" in lines[0]
    assert lines[0].isprintable()
    assert "secret" not in caplog.text
    assert "Traceback" not in caplog.text
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_is_no_request_is_refused_while_a_stream_goes_on(
    watched: Running, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    data, status = UNREADABLE[name]
    answer = read_answer(await say(watched, data))
    check_refusal(answer, status)
    check_log(caplog, answer)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("num_parts", [1, 2])
async def test_both_parsers_refuse_it_whole_and_in_pieces(
    scripted: Running, caplog: pytest.LogCaptureFixture, num_parts: int
) -> None:
    caplog.set_level("INFO")
    for name, (data, status) in UNREADABLE.items():
        middle = len(CHUNKED) if data.startswith(CHUNKED) else len(data) // 2
        ended = data + b"\r\n\r\n"  # the parser in Python looks at whole heads only
        parts = (ended,) if num_parts == 1 else (ended[:middle], ended[middle:])
        answer = read_answer(await say(scripted, *parts, pause_s=0.02))
        print(name)  # shown if the next line fails
        check_refusal(answer, status)
        check_log(caplog, answer)


async def test_what_speaks_tls_is_named_in_the_log(
    scripted: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await say(scripted, HELLO)
    assert "not a request 400: TLS, where http:// is spoken" in caplog.text


async def test_hundreds_of_invented_methods_get_an_envelope_each(watched: Running) -> None:
    chance = Random(2)
    tokens = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
    for _ in range(300):
        method = "".join(chance.choices(tokens, k=chance.randint(1, 20)))
        closing = f"{method} /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        answer = read_answer(await say(watched, closing.encode()))
        check_refusal(answer, answer.status)
        assert answer.status in (400, 405)


@pytest.mark.parametrize("method", ["PUT", "TRACE", "BREW", "PROPFIND", "M-SEARCH", "QUERY"])
@pytest.mark.usefixtures("parser")
async def test_a_method_that_parsers_know_is_refused_by_its_route(
    scripted: Running, method: str
) -> None:
    request = f"{method} /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = read_answer(await say(scripted, request.encode()))
    assert (answer.status, answer.json["error"]["type"]) in [
        (405, "invalid_request_error"),
        (400, "invalid_request_error"),  # not all are known to both
    ]


@pytest.mark.parametrize(
    "upgrade",
    [
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eHg=\r\n",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    ],
    ids=["websocket", "h2c"],
)
@pytest.mark.usefixtures("parser")
async def test_an_upgrade_is_ignored(scripted: Running, upgrade: str) -> None:
    body = json.dumps(ask(PLAIN, max_tokens=5)).encode()
    first = f"{POST}{upgrade}Content-Length: {len(body)}\r\n\r\n".encode() + body
    second = f"{POST}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    answer = read_answer(await say(scripted, first, second, pause_s=0.2))
    for one in (answer, read_answer(answer.rest)):
        assert one.json["content"] == [{"type": "text", "text": TAPES[PLAIN][:5]}]


async def test_connecting_elsewhere_is_not_found(scripted: Running) -> None:
    request = b"CONNECT secret.example:443 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = read_answer(await say(scripted, request))
    assert (answer.status, answer.json["error"]["type"]) == (404, "not_found_error")
    assert b"secret" not in answer.body


@dataclass(frozen=True)
class Elsewhere:
    """A server in another process."""

    url: str


async def test_without_its_compiled_parts_aiohttp_is_held_to_the_same(
    model_folder: Callable[[str], Path],
) -> None:
    script = Path(__file__).parent / "serve_folder.py"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), str(model_folder("scripted")), "1"),
        env={**os.environ, "AIOHTTP_NO_EXTENSIONS": "1"},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        server = Elsewhere((await process.stdout.readline()).decode().strip())
        check_refusal(read_answer(await say(server, UNREADABLE["an escape sequence"][0])), 400)
        sound = post(ask(PLAIN, max_tokens=1)).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        assert read_answer(await say(server, sound)).status == 200
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize(
    "forged",
    [
        "\r\n2026-11-29 ERROR secret",
        "\x1b[2J\x1b[31msecret",
        "secret\u2028secret\u0085secret\u202esecret",
    ],
    ids=["line", "escape", "unicode"],
)
async def test_no_line_of_the_log_is_written_by_a_client(
    scripted: Running, forged: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    url, session = scripted.url, scripted.session
    await scripted.post(ask(PLAIN, max_tokens=5, system=forged))
    await scripted.post(ask(PLAIN, model=forged), status=400)
    await scripted.post(ask(PLAIN, **{forged: 1, "max_tokens": 5}))
    async with session.get(url + "/v1/models/" + quote(forged)) as response:
        assert response.status == 404
    async with session.get(url + "/" + quote(forged), params={forged: forged}) as response:
        assert response.status == 404
    await say(scripted, f"GET /{forged} HTTP/1.1\r\nHost: {forged}\r\n\r\n\r\n".encode())
    assert len(caplog.messages) >= 6
    assert all(line.isprintable() for line in caplog.messages)
    assert "secret" not in caplog.text
