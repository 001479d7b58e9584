"""/v1/files: the official SDK's calls, what a form may hold, and who sees what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import pytest
from anthropic import AsyncAnthropic

from minimsg.config import ServerConfig
from minimsg.errors import StoreFull
from minimsg.limits import LIMITS, Limits
from minimsg.protocol.openapi import document
from minimsg.store.blobs import Incoming

from .conftest import Start
from .raw import Answer, connect, next_answer
from .running import Json, Running, eventually
from .test_auth import ALICE, BOB, TENANTS, keys_file
from .test_errors import fail
from .test_sdk import sdk

__all__ = ["keys_file"]  # a fixture


@pytest.fixture
async def client(scripted: Running) -> AsyncIterator[AsyncAnthropic]:
    async with sdk(scripted) as made:
        yield made


def form(
    name: str = "notes.txt",
    data: bytes = b"some text",
    mime_type: str = "text/plain",
    **fields: str,
) -> aiohttp.FormData:
    made = aiohttp.FormData(quote_fields=False)
    made.add_field("file", data, filename=name, content_type=mime_type)
    for field, value in fields.items():
        made.add_field(field, value)
    return made


async def upload(running: Running, made: aiohttp.FormData, **headers: str) -> Json:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with running.session.post(
        f"{running.url}/v1/files", data=made, headers=named
    ) as response:
        assert response.status == 200, await response.text()
        answer: Json = await response.json()
        return answer


async def refused(running: Running, made: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, error, _ = await fail(running, path="/v1/files", data=made, headers=named)
    return status, error


def stored(running: Running) -> list[Path]:
    """Every file that holds an upload, whole or in part."""
    folder = running.server.store.folder
    return [path for name in ("incoming", "files") for path in (folder / name).iterdir()]


async def test_what_the_sdk_uploads_it_finds_lists_and_deletes(client: AsyncAnthropic) -> None:
    before = datetime.now(UTC)
    made = await client.files.upload(file=("report.pdf", b"%PDF-1.7 ...", "application/pdf"))
    assert (made.filename, made.mime_type, made.size_bytes) == ("report.pdf", "application/pdf", 12)
    assert made.id.startswith("file_01")
    assert made.downloadable is False
    assert made.expires_at is None
    assert before <= made.created_at <= datetime.now(UTC)
    assert await client.files.retrieve_metadata(made.id) == made
    assert [file async for file in client.files.list()] == [made]
    deleted = await client.files.delete(made.id)
    assert (deleted.id, deleted.type) == (made.id, "file_deleted")
    assert [file async for file in client.files.list()] == []
    for call in (client.files.retrieve_metadata, client.files.delete, client.files.download):
        with pytest.raises(anthropic.NotFoundError):
            await call(made.id)


async def test_the_sdks_beta_calls_do_the_same(client: AsyncAnthropic) -> None:
    made = await client.beta.files.upload(file=("a.txt", b"x"), betas=["files-api-2025-04-14"])
    assert await client.beta.files.retrieve_metadata(made.id) == made
    assert [file.id async for file in client.beta.files.list()] == [made.id]
    with pytest.raises(anthropic.BadRequestError):
        await client.beta.files.download(made.id)
    assert (await client.beta.files.delete(made.id)).id == made.id


async def test_the_sdk_pages_through_all_files_newest_first(client: AsyncAnthropic) -> None:
    ids = [(await client.files.upload(file=(f"{n}.txt", b"x"))).id for n in range(5)]
    page = await client.files.list(limit=2)
    assert (len(page.data), page.has_next_page()) == (2, True)
    assert [file.id async for file in client.files.list(limit=2)] == ids[::-1]
    found = [file.id async for file in client.files.list(ids=[ids[1], "file_unknown", ids[3]])]
    assert found == [ids[3], ids[1]]


async def test_an_uploaded_file_is_not_given_back(client: AsyncAnthropic) -> None:
    made = await client.files.upload(file=("a.txt", b"x"))
    with pytest.raises(anthropic.BadRequestError) as caught:
        await client.files.download(made.id)
    assert caught.value.error_code == "file_not_downloadable"


async def test_an_upload_may_say_when_it_expires(
    scripted: Running, client: AsyncAnthropic, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await client.files.upload(file=("a.txt", b"x"), expires_in_seconds=3_600)
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).total_seconds() == 3_600
    later = time.time() + 3_601
    monkeypatch.setattr(scripted.server.store.files, "_clock", lambda: later)
    with pytest.raises(anthropic.NotFoundError) as caught:
        await client.files.retrieve_metadata(made.id)
    assert caught.value.error_code == "file_expired"
    assert [file async for file in client.files.list()] == []


async def test_files_are_there_after_a_restart_and_in_no_other_folder(
    start: Start, tmp_path: Path
) -> None:
    config = ServerConfig(data_dir=tmp_path / "first")
    running = await start(config=config)
    made = await upload(running, form())
    await running.server.store.close()
    again = await start(config=config)
    other = await start(config=ServerConfig(data_dir=tmp_path / "other"))
    for server, ids in ((again, [made["id"]]), (other, [])):
        async with sdk(server) as client:
            assert [file.id async for file in client.files.list()] == ids


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


async def test_the_document_has_every_route_of_files(scripted: Running) -> None:
    served = {
        (route.method.lower(), route.resource.canonical.replace("{id}", "{file_id}"))
        for route in scripted.app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    described = {
        (method, path) for path, methods in document()["paths"].items() for method in methods
    }
    assert {(m, path) for m, path in served if path.startswith("/v1/files")} == {
        (m, path) for m, path in described if path.startswith("/v1/files")
    }
    assert described <= served | {("get", "/v1/models/{model_id}")}


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


@pytest.mark.parametrize("profile", ["compat", "strict"])
async def test_an_unknown_field_is_told_or_refused(start: Start, profile: str) -> None:
    running = await start(config=ServerConfig(profile=profile))
    headers = {"anthropic-version": "2023-06-01"}
    async with running.session.post(
        f"{running.url}/v1/files", data=form(purpose="x"), headers=headers
    ) as response:
        answer = await response.json()
    if profile == "compat":
        assert (response.status, response.headers["minimsg-ignored"]) == (200, "purpose")
    else:
        message = "purpose: Extra inputs are not permitted"
        assert (response.status, answer["error"]["message"]) == (400, message)


async def test_strict_asks_for_a_version_and_known_betas(start: Start) -> None:
    running = await start(config=ServerConfig(profile="strict"))
    for method, path in (
        ("GET", "/v1/files"),
        ("GET", "/v1/files/file_1"),
        ("GET", "/v1/files/file_1/content"),
        ("DELETE", "/v1/files/file_1"),
        ("POST", "/v1/files"),
    ):
        status, error, _ = await fail(running, method, path)
        assert (status, error["message"]) == (400, "anthropic-version: header is required")
        headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "foo"}
        status, error, _ = await fail(running, method, path, headers=headers)
        assert (status, "`foo`" in error["message"]) == (400, True)


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=1001", "limit=x", "page=", "page=x", "page=page_0", "page=page_1x"),
        *("ids[]=a&limit=1", "ids[]=a&page=page_1", "page=page_" + "9" * 30),
        "&".join(f"ids[]=file_{number}" for number in range(101)),
    ],
)
async def test_a_list_that_cannot_be_is_400(scripted: Running, query: str) -> None:
    status, error, _ = await fail(scripted, "GET", f"/v1/files?{query}")
    assert (status, error["type"]) == (400, "invalid_request_error")


async def test_equal_ids_are_counted_once(scripted: Running) -> None:
    made = await upload(scripted, form())
    query = "&".join([f"ids[]={made['id']}"] * 101)
    async with scripted.session.get(f"{scripted.url}/v1/files?{query}") as response:
        assert [file["id"] for file in (await response.json())["data"]] == [made["id"]]


async def test_files_of_others_are_as_files_that_never_were(
    start: Start, keys_file: Callable[[object], ServerConfig]
) -> None:
    running = await start(config=keys_file(TENANTS))
    made = await upload(running, form(), x_api_key=ALICE)
    bob = {"x-api-key": BOB}
    for method, end in (("GET", ""), ("DELETE", ""), ("GET", "/content")):
        seen = [
            await fail(running, method, f"/v1/files/{id}{end}", headers=bob)
            for id in (made["id"], "file_01unknown")
        ]
        assert [status for status, _, _ in seen] == [404, 404]
        assert seen[0][1] == seen[1][1]
    for query in ("", f"?ids[]={made['id']}"):
        async with running.session.get(f"{running.url}/v1/files{query}", headers=bob) as response:
            assert (await response.json())["data"] == []
    async with running.session.get(
        f"{running.url}/v1/files/{made['id']}", headers={"x-api-key": ALICE}
    ) as response:
        assert await response.json() == made


@pytest.mark.parametrize("prefix", ["/v1", ""])
async def test_probes_and_methods(scripted: Running, prefix: str) -> None:
    made = await upload(scripted, form())
    for path in (f"{prefix}/files", f"{prefix}/files/{made['id']}"):
        async with scripted.session.head(scripted.url + path) as response:
            assert (response.status, await response.read()) == (200, b"")
    status, _, headers = await fail(scripted, "PUT", f"{prefix}/files/{made['id']}")
    assert (status, headers["Allow"]) == (405, "DELETE, GET, HEAD, OPTIONS")


@pytest.mark.parametrize(
    "id", ["..%2f..%2fetc%2fpasswd", "file_..%2fx", "%00", "file_%ff", "x" * 4_000, "%ED%A0%80"]
)
async def test_a_path_in_the_place_of_an_id_is_not_found(scripted: Running, id: str) -> None:
    for method, end in (("GET", ""), ("DELETE", ""), ("GET", "/content")):
        status, error, _ = await fail(scripted, method, f"/v1/files/{id}{end}")
        assert (status, error["type"]) == (404, "not_found_error")


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
    monkeypatch.setattr("minimsg.server.multipart.LIMITS", small)


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
