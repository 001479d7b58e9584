"""Names and web pages: who is refused before anything starts, and what a page may read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minimsg.config import ServerConfig
from minimsg.errors import ConfigError
from minimsg.server.origin import AllowList

from .conftest import Start
from .running import PLAIN, Json, Running, ask
from .test_errors import fail

PAGE = "https://chat.example"
OURS = "http://localhost:3000"
SENT = "authorization, x-api-key, anthropic-version, anthropic-beta, content-type, x-stainless-os"


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]:8080"],
)
def test_loopback_names_are_answered_with_any_port(host: str) -> None:
    assert AllowList.of(ServerConfig()).has_host(host)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"),
        *("", ":8080", "localhost:8080@evil.example", "evil.example/localhost", "localhost:http"),
        *("192.168.1.2:8080", "0.0.0.0", "[::]", "::1", "localhost, evil.example", "2130706433"),
    ],
)
def test_any_other_name_is_refused_on_loopback(host: str) -> None:
    assert not AllowList.of(ServerConfig()).has_host(host)


@pytest.mark.parametrize(
    ("config", "host", "is_answered"),
    [
        (ServerConfig(allow_host=("box.lan",)), "BOX.lan:8080", True),
        (ServerConfig(allow_host=("box.lan:8080",)), "box.lan", True),
        (ServerConfig(allow_host=("box.lan",)), "x.box.lan", False),
        (ServerConfig(host="0.0.0.0"), "anything.example", True),
        (ServerConfig(host="0.0.0.0", allow_host=("box.lan",)), "box.lan", True),
        (ServerConfig(host="0.0.0.0", allow_host=("box.lan",)), "127.0.0.1", True),
        (ServerConfig(host="0.0.0.0", allow_host=("box.lan",)), "evil.example", False),
    ],
)
def test_names_can_be_added_and_a_public_server_answers_to_all_until_one_is(
    config: ServerConfig, host: str, is_answered: bool
) -> None:
    assert AllowList.of(config).has_host(host) is is_answered


@pytest.mark.parametrize("host", ["", "http://box.lan", "a b", "*/x"])
def test_a_name_that_no_request_can_have_is_refused_at_start(host: str) -> None:
    with pytest.raises(ConfigError, match="--allow-host"):
        AllowList.of(ServerConfig(allow_host=(host,)))


@pytest.mark.parametrize("origin", ["", "example.com", "https://example.com/page"])
def test_an_origin_that_no_browser_sends_is_refused_at_start(origin: str) -> None:
    with pytest.raises(ConfigError, match="--allow-origin"):
        AllowList.of(ServerConfig(allow_origin=(origin,)))


@pytest.mark.parametrize(
    ("origin", "allowed", "may_call"),
    [
        ("http://localhost", (), True),
        ("http://localhost:5173", (), True),
        ("https://localhost:3000", (), True),
        ("http://127.0.0.1:8080", (), True),
        ("http://[::1]:8080", (), True),
        ("null", (), False),
        ("", (), False),
        ("https://evil.example", (), False),
        ("http://localhost.evil.example", (), False),
        ("http://localhost:80@evil.example", (), False),
        ("http://localhost:", (), False),
        ("file://", (), False),
        (PAGE, (PAGE,), True),
        (PAGE, ("https://CHAT.example/",), True),
        ("https://chat.example:444", (PAGE,), False),
        ("http://chat.example", (PAGE,), False),
        ("null", ("null",), True),
        ("https://anyone.example", ("*",), True),
    ],
)
def test_web_pages_of_this_machine_and_of_named_origins_may_call(
    origin: str, allowed: tuple[str, ...], may_call: bool
) -> None:
    assert AllowList.of(ServerConfig(allow_origin=allowed)).has_origin(origin) is may_call


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
async def test_a_strange_page_is_403_and_starts_nothing(
    scripted: Running, headers: dict[str, str], content_type: str
) -> None:
    body = json.dumps(ask(PLAIN)).encode()
    status, error, answered = await fail(
        scripted, data=body, headers=headers | {"content-type": content_type}
    )
    assert (status, error["type"]) == (403, "permission_error")
    assert "evil" not in error["message"]
    assert "Access-Control-Allow-Origin" not in answered
    assert scripted.server.worker.stats().steps == 0


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models"])
async def test_a_strange_host_is_refused_on_every_route(scripted: Running, path: str) -> None:
    status, _, _ = await fail(scripted, "GET", path, headers={"host": "evil.example:8080"})
    assert status == 403


async def preflight(running: Running, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with running.session.options(running.url + path, headers=named) as response:
        assert await response.read() == b""
        return response.status, {name.lower(): v for name, v in response.headers.items()}


@pytest.mark.parametrize("path", ["/v1/messages", "/messages/count_tokens", "/v1/models", "/no"])
async def test_a_preflight_is_answered_on_every_route_without_a_key(
    start: Start, tmp_path: Path, path: str
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"alice": "sk-alice"}')
    running = await start(config=ServerConfig(keys_file=keys, allow_origin=(PAGE,)))
    status, headers = await preflight(
        running,
        path,
        origin=PAGE,
        access_control_request_method="POST",
        access_control_request_headers=SENT,
    )
    assert status == 204
    assert headers["access-control-allow-origin"] == PAGE
    assert headers["access-control-allow-headers"] == SENT
    assert "POST" in headers["access-control-allow-methods"]
    assert int(headers["access-control-max-age"]) > 0
    assert headers["vary"].lower() == "origin"
    status, _, _ = await fail(running, "POST", path, headers={"origin": PAGE})
    assert status == 401


async def test_a_preflight_of_a_strange_page_is_refused(scripted: Running) -> None:
    async with scripted.session.options(
        scripted.url + "/v1/messages",
        headers={"origin": "null", "access-control-request-method": "POST"},
    ) as response:
        assert response.status == 403
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("wanted", [None, "", "x-api-key; y", "a,,b", "é"])
async def test_a_preflight_that_names_no_headers_gets_the_usual_ones(
    scripted: Running, wanted: str | None
) -> None:
    asked = {} if wanted is None else {"access_control_request_headers": wanted}
    _, headers = await preflight(
        scripted, "/v1/messages", origin=OURS, access_control_request_method="POST", **asked
    )
    allowed = headers["access-control-allow-headers"].split(", ")
    assert {"x-api-key", "anthropic-version", "anthropic-beta", "content-type"} <= set(allowed)
    assert "anthropic-dangerous-direct-browser-access" in allowed


@pytest.mark.parametrize(("path", "allow"), [("/v1/messages", "OPTIONS, POST"), ("/", "GET, HEAD")])
async def test_options_that_is_no_preflight_says_what_the_route_takes(
    scripted: Running, path: str, allow: str
) -> None:
    for origin in ({}, {"origin": OURS}):
        status, headers = await preflight(scripted, path, **origin)
        assert status == 204
        assert set(allow.split(", ")) <= set(headers["allow"].split(", "))
        assert ("access-control-allow-origin" in headers) == bool(origin)


@pytest.mark.parametrize(
    ("body", "status"), [(ask(PLAIN), 200), (ask(PLAIN, stream=True), 200), ({}, 400)]
)
async def test_an_allowed_page_may_read_answers_errors_and_streams(
    scripted: Running, body: Json, status: int
) -> None:
    async with scripted.session.post(
        f"{scripted.url}/v1/messages", json=body, headers={"origin": OURS}
    ) as response:
        assert response.status == status
        assert response.headers["access-control-allow-origin"] == OURS
        shown = response.headers["access-control-expose-headers"].split(", ")
        await response.read()
    assert {"request-id", "retry-after", "minimsg-ignored"} <= set(shown)
    assert "anthropic-ratelimit-tokens-reset" in shown


async def test_a_client_that_is_no_browser_gets_no_such_headers(scripted: Running) -> None:
    _, response = await scripted.post(ask(PLAIN))
    assert not [name for name in response.headers if name.lower().startswith("access-control")]
