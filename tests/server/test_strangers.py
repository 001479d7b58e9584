"""Whatever strangers try at the door, a client with a key goes on reading and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from minimsg.config import ServerConfig
from minimsg.server import count_tokens

from .bystander import bystander
from .conftest import Start
from .running import PLAIN, Json, Running, ask
from .test_auth import is_open, routes
from .test_errors import fail

KEY = "sk-alice"
BODY = json.dumps(ask(PLAIN)).encode()
JSON = {"content-type": "application/json"}


@pytest.fixture
async def watched(start: Start, tmp_path: Path) -> AsyncIterator[Running]:
    """A server with keys, and somebody who uses it."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"alice": KEY}))
    running = await start(config=ServerConfig(keys_file=keys))
    async with bystander(running, KEY) as seen:
        yield seen


@pytest.mark.parametrize(
    ("headers", "status", "type"),
    [
        ({"host": "evil.example", "x-api-key": KEY}, 403, "permission_error"),
        ({"origin": "https://evil.example", "x-api-key": KEY}, 403, "permission_error"),
        ({"origin": "null", "x-api-key": KEY}, 403, "permission_error"),
        ({}, 401, "authentication_error"),
        ({"x-api-key": "é"}, 401, "authentication_error"),
        ({"x-api-key": KEY[:-1]}, 401, "authentication_error"),
        ({"authorization": "Bearer " + "x" * 8_000}, 401, "authentication_error"),
        ({"x-api-key": KEY, "content-type": "text/plain"}, 415, "invalid_request_error"),
    ],
)
async def test_a_stranger_is_refused_at_once(
    watched: Running, headers: dict[str, str], status: int, type: str
) -> None:
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        seen, error, _ = await fail(watched, path=path, data=BODY, headers=JSON | headers)
        assert (seen, error["type"]) == (status, type)


async def test_a_walk_over_every_route_finds_no_open_door(watched: Running) -> None:
    for method, path in routes(watched):
        async with watched.session.request(method, watched.url + path) as response:
            assert response.status == (200 if is_open(path) else 401)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/files/..%2f..%2fetc%2fpasswd",
        "/v1/files/file_../../x",
        "/v1/models/..%2f..%2fetc%2fpasswd",
        "/v1/models/evil.com%2fa%2fb",
        "/v1/models/%00",
    ],
)
async def test_a_path_in_the_place_of_an_id_is_not_found(watched: Running, path: str) -> None:
    status, error, _ = await fail(watched, "GET", path, headers={"x-api-key": KEY})
    assert (status, error["type"]) == (404, "not_found_error")
    assert "root:" not in error["message"]


@pytest.mark.parametrize("model", ["../../etc/passwd", "/root", "hf://x/y", "evil.com/a/b"])
async def test_a_path_in_the_place_of_a_model_is_not_found(watched: Running, model: str) -> None:
    body: Json = ask(PLAIN) | {"model": model}
    status, error, _ = await fail(watched, json=body, headers={"x-api-key": KEY})
    assert (status, error["message"]) == (404, f"model: {model}")


async def test_a_crash_quotes_no_key(
    watched: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")

    def crash(*arguments: object) -> None:
        raise LookupError(KEY)

    monkeypatch.setattr(count_tokens, "count_prompt", crash)
    status, error, _ = await fail(
        watched, path="/v1/messages/count_tokens", data=b"{}", headers=JSON | {"x-api-key": KEY}
    )
    assert (status, error["message"]) == (500, "Internal server error")
    assert "LookupError" in caplog.text
    assert KEY not in caplog.text
