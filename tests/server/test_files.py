"""/v1/files: the official SDK's calls, what a form may hold, and who sees what."""

from __future__ import annotations

import re
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
from minimsg.protocol.openapi import document

from .conftest import Start
from .running import Json, Running
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
    monkeypatch.setattr(scripted.server.store, "clock", lambda: later)
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


async def test_the_document_has_every_route_of_files(scripted: Running) -> None:
    served = {
        (route.method.lower(), re.sub(r"{\w+}", "{id}", route.resource.canonical))
        for route in scripted.app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    described = {
        (method, re.sub(r"{\w+}", "{id}", path))
        for path, methods in document()["paths"].items()
        for method in methods
    }
    assert {(m, path) for m, path in served if path.startswith("/v1/files")} == {
        (m, path) for m, path in described if path.startswith("/v1/files")
    }
    assert described <= served


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
