"""The form of an upload: what it may hold, how it is named, and what is left when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from minimsg.errors import StoreFull
from minimsg.limits import LIMITS, Limits
from minimsg.store.blobs import Incoming

from .raw import Answer, connect, next_answer
from .running import Running, eventually
from .test_files import form, refused, stored, upload


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\\..\\b.txt", "b.txt"),
        ("CON", "CON"),
        ("é\U0001f469.txt", "é\U0001f469.txt"),
        ("n" * 300 + ".txt", "n" * 251 + ".txt"),
        ("n" * 300, "n" * 255),
        ("a\tb\x85c.txt", "abc.txt"),
        ("", "unnamed.txt"),
        ("..", "unnamed.txt"),
        ("dir/", "unnamed.txt"),
        (" a b ", "a b"),
        ("a\u202egnp.exe", "agnp.exe"),
        ("\u2067a\u2069\u200f\u061c.txt", "a.txt"),
    ],
)
async def test_a_name_is_a_label_and_no_place(scripted: Running, name: str, shown: str) -> None:
    made = await upload(scripted, form(name))
    assert made["filename"] == shown
    (path,) = stored(scripted)
    assert path.name == made["id"]


RAW = b'--x\r\nContent-Disposition: form-data; name="file"; filename=%b\r\n%b\r\n%b\r\n--x--\r\n'
MULTIPART = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'"a%0A%00b.txt"', "a%0A%00b.txt"),
        (b'"\xff\xfe.txt"', "\ufffd\ufffd.txt"),
        (b"\"\"; filename*=UTF-8''%E2%82%AC.txt", "€.txt"),
    ],
)
async def test_a_name_that_no_header_should_hold_does_no_harm(
    scripted: Running, raw: bytes, shown: str
) -> None:
    async with scripted.session.post(
        f"{scripted.url}/v1/files", data=RAW % (raw, b"", b"x"), headers={"content-type": MULTIPART}
    ) as response:
        assert response.status == 200, await response.text()
        assert (await response.json())["filename"] == shown


@pytest.mark.parametrize(
    ("said", "name", "expected"),
    [
        ("text/plain; charset=utf-8", "a", "text/plain"),
        ("application/octet-stream", "a.png", "image/png"),
        ("nonsense", "a.pdf", "application/pdf"),
        ('x/y"z', "a", "application/octet-stream"),
    ],
)
async def test_the_type_is_what_the_client_or_else_the_name_says(
    scripted: Running, said: str, name: str, expected: str
) -> None:
    assert (await upload(scripted, form(name, mime_type=said)))["mime_type"] == expected


async def test_an_empty_file_is_a_file(scripted: Running) -> None:
    assert (await upload(scripted, form(data=b"")))["size_bytes"] == 0


async def test_what_looks_like_a_boundary_is_not_one(scripted: Running) -> None:
    data = b"\r\n--x\r\n--x--\r\n--\r\n" + b"\r\n-" * 100_000
    made = await upload(scripted, form(data=data))
    (path,) = stored(scripted)
    assert path.read_bytes() == data
    assert made["size_bytes"] == len(data)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not a valid multipart form"),
        (b"--x\r\n", "not a valid multipart form"),
        (b"no boundary at all", "not a valid multipart form"),
        ((RAW % (b'"a"', b"", b"x"))[:-9], "not a valid multipart form"),
        (RAW.replace(b'"file"', b'"other"') % (b'"a"', b"", b"x"), "file: Field required"),
        (RAW % (b'"a"', b"Content-Transfer-Encoding: base64\r\n", b"eA=="), "must be binary"),
        (
            RAW % (b'"a"', b"Content-Type: multipart/mixed; boundary=y\r\n", b"--y--"),
            "not a valid multipart form",
        ),
        (RAW[:-7] * 2 % (b'"a"', b"", b"x", b'"b"', b"", b"x") + b"--x--\r\n", "only once"),
    ],
)
async def test_a_form_that_is_none_is_400_and_leaves_nothing(
    scripted: Running, body: bytes, why: str
) -> None:
    status, error = await refused(scripted, body, content_type=MULTIPART)
    assert (status, error["type"]) == (400, "invalid_request_error")
    assert why in error["message"]
    assert stored(scripted) == []


@pytest.mark.parametrize("seconds", ["3599", "7776001", "soon", "", "-1", "1e4", "NaN"])
async def test_a_life_out_of_bounds_is_400(scripted: Running, seconds: str) -> None:
    status, error = await refused(scripted, form(expires_in_seconds=seconds))
    assert (status, error["message"].split(":")[0]) == (400, "expires_in_seconds")
    assert stored(scripted) == []


async def test_more_or_longer_fields_than_any_client_sends_are_400(scripted: Running) -> None:
    many = form()
    for number in range(LIMITS.form_parts):
        many.add_field(f"field{number}", "x")
    assert (await refused(scripted, many))[0] == 400
    assert (await refused(scripted, form(expires_in_seconds="1" * 1_025)))[0] == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "application/json"}, 415),
        ({"content_type": "multipart/mixed; boundary=x"}, 415),
        ({"content_type": "multipart/form-data"}, 400),
        ({"content_type": MULTIPART, "content_encoding": "gzip"}, 400),
        ({"content_type": MULTIPART, "origin": "https://evil.example"}, 403),
        ({"content_type": MULTIPART, "host": "evil.example"}, 403),
    ],
)
async def test_what_may_not_be_sent_is_refused_by_its_headers(
    scripted: Running, headers: dict[str, str], status: int
) -> None:
    body = RAW % (b'"a"', b"", b"x")
    assert (await refused(scripted, body, **headers))[0] == status
    assert stored(scripted) == []


def limit(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    small = Limits(**limits)  # type: ignore[arg-type]
    for module in ("body", "multipart"):
        monkeypatch.setattr(f"minimsg.server.{module}.LIMITS", small)


async def test_a_file_that_is_too_large_is_413_whether_it_says_so_or_not(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await declared(scripted, LIMITS.file_bytes + LIMITS.body_bytes + 1)
    assert (answer.status, answer.json["error"]["type"]) == (413, "request_too_large")
    limit(monkeypatch, file_bytes=100_000)
    await upload(scripted, form(data=b"x" * 100_000))
    status, error = await refused(scripted, form(data=b"x" * 100_001))
    assert (status, error["type"]) == (413, "request_too_large")
    assert len(stored(scripted)) == 1


async def declared(running: Running, size: int) -> Answer:
    """What is answered to the head of an upload of `size` bytes."""
    head = f"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {MULTIPART}\r\n"
    async with connect(running) as (reader, writer):
        writer.write(f"{head}Content-Length: {size}\r\n\r\n".encode())
        return await next_answer(reader)


async def test_an_upload_that_stops_coming_is_late_and_leaves_nothing(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, body_timeout_s=0.2)
    body = RAW % (b'"a"', b"", b"x" * 1_000)

    async def slowly() -> AsyncIterator[bytes]:
        yield body[:500]
        await asyncio.sleep(5)

    status, error = await refused(scripted, slowly(), content_type=MULTIPART)
    assert (status, error["details"]["error_code"]) == (408, "request_body_timeout")
    assert stored(scripted) == []


async def test_a_client_that_leaves_in_its_upload_leaves_nothing(watched: Running) -> None:
    head = f"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {MULTIPART}\r\n"
    begun = head.encode() + b"Content-Length: 1000000\r\n\r\n" + RAW[:-9] % (b'"a"', b"", b"x")
    async with connect(watched) as (_, writer):
        writer.write(begun + b"x" * 100_000)
        await eventually(lambda: len(stored(watched)) == 1)
    await eventually(lambda: stored(watched) == [])


async def test_a_full_disk_is_507_and_the_next_upload_may_fit(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Incoming, data: bytes) -> None:
        raise StoreFull

    with monkeypatch.context() as patched:
        patched.setattr(Incoming, "write", full)
        status, error = await refused(scripted, form())
    assert (status, error["type"]) == (507, "api_error")
    assert stored(scripted) == []
    await upload(scripted, form())
