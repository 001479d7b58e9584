"""Who may call: every route, every form of a key, and that no key is ever shown."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from minimsg.config import ServerConfig
from minimsg.engine.types import GenerationRequest
from minimsg.engine.worker import EngineWorker
from minimsg.errors import ConfigError, Unauthorized
from minimsg.server.auth import PROBES, Keys, open_keys
from minimsg.server.origin import is_loopback
from minimsg.server.state import Server

from .conftest import Start
from .running import PLAIN, Running, ask
from .test_errors import fail

ALICE, BOB, OLD_BOB = "sk-alice-1", "sk-bob-1=x", "sk-bob-0"
TENANTS = {"alice": ALICE, "bob": [f"sha256:{sha256(BOB.encode()).hexdigest()}", OLD_BOB]}


@pytest.fixture
def keys_file(tmp_path: Path) -> Callable[[object], ServerConfig]:
    """Settings with a key file of the given content."""

    def write(content: object) -> ServerConfig:
        file = tmp_path / "keys.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        return ServerConfig(keys_file=file)

    return write


@pytest.fixture
async def locked(start: Start, keys_file: Callable[[object], ServerConfig]) -> Running:
    """A server with the keys of two tenants."""
    return await start(config=keys_file(TENANTS))


def routes(running: Running) -> list[tuple[str, str]]:
    """Method and a path of every route there is."""
    found = []
    for route in running.app.router.routes():
        assert route.resource is not None
        path = route.resource.canonical.replace("{id}", "scripted").replace("{file}", "main.js")
        found.append((route.method, path))
    return found


def is_open(path: str) -> bool:
    """Whether nobody needs a key there: probes, and the files of the page, which hold no data."""
    return path in PROBES or path.startswith("/inspect")


async def status_of(running: Running, method: str, path: str, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with running.session.request(method, running.url + path, headers=named) as response:
        return response.status


async def test_every_route_but_health_and_the_page_wants_a_key(locked: Running) -> None:
    walked = routes(locked)
    assert {"/", "/v1/messages", "/models/scripted", "/health"} <= {path for _, path in walked}
    for method, path in walked:
        expected = 200 if is_open(path) else 401
        assert await status_of(locked, method, path) == expected, (method, path)
    assert all(path == "/metrics" or path.startswith("/health") for path in PROBES)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nowhere"),
        ("GET", "/health/"),
        ("GET", "//health"),
        ("GET", "/health/../v1/models"),
        ("GET", "/health%2flive"),
        ("GET", "/v1/models/%2e%2e/health"),
        ("POST", "/health"),
        ("OPTIONS", "/v1/messages"),
        ("PROPFIND", "/v1/messages"),
    ],
)
async def test_without_a_key_nobody_learns_what_exists(
    locked: Running, method: str, path: str
) -> None:
    status, error, headers = await fail(locked, method, path)
    assert (status, error["type"]) == (401, "authentication_error")
    assert headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "x-api-key header is required"),
        ({"authorization": "Basic c2stYWxpY2UtMQ=="}, "x-api-key header is required"),
        ({"authorization": ALICE}, "x-api-key header is required"),
        ({"x-api-key": ""}, "invalid x-api-key"),
        ({"x-api-key": "sk-alice-2"}, "invalid x-api-key"),
        ({"x-api-key": ALICE.upper()}, "invalid x-api-key"),
        ({"x-api-key": "é"}, "invalid x-api-key"),
        ({"x-api-key": "\udce9"}, "invalid x-api-key"),  # sent as the byte E9: no UTF-8
        ({"x-api-key": f"sha256:{sha256(ALICE.encode()).hexdigest()}"}, "invalid x-api-key"),
        ({"x-api-key": sha256(BOB.encode()).hexdigest()}, "invalid x-api-key"),
        ({"authorization": "Bearer"}, "invalid x-api-key"),
        ({"x-api-key": "wrong", "authorization": f"Bearer {ALICE}"}, "invalid x-api-key"),
    ],
)
def test_a_missing_and_a_wrong_key_have_their_words(headers: dict[str, str], message: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        Keys([("alice", ALICE), ("bob", BOB)]).tenant(headers)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("headers", "tenant"),
    [
        ({"x-api-key": ALICE}, "alice"),
        ({"authorization": f"Bearer {BOB}"}, "bob"),
        ({"authorization": f"bearer  {OLD_BOB} "}, "bob"),
        ({"x-api-key": OLD_BOB, "authorization": f"Bearer {ALICE}"}, "bob"),
        ({"x-api-key": ALICE, "authorization": "Bearer wrong"}, "alice"),
    ],
)
def test_a_key_in_either_header_names_its_tenant(
    keys_file: Callable[[object], ServerConfig], headers: dict[str, str], tenant: str
) -> None:
    assert open_keys(keys_file(TENANTS), {}).tenant(headers) == tenant


def test_without_keys_everybody_is_the_tenant_local() -> None:
    keys = open_keys(ServerConfig(), {})
    assert keys.tenant({}) == keys.tenant({"x-api-key": "any"}) == "local"
    assert not keys


def test_keys_come_from_the_environment_too(keys_file: Callable[[object], ServerConfig]) -> None:
    digest = sha256(BOB.encode()).hexdigest()
    keys = open_keys(
        keys_file({"carol": "sk-carol"}),
        {"MINIMSG_API_KEYS": f"alice={ALICE}, bob=sha256:{digest},"},
    )
    assert keys.tenants == ["alice", "bob", "carol"]
    assert keys.tenant({"x-api-key": ALICE}) == "alice"
    assert keys.tenant({"x-api-key": BOB}) == "bob"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "sk-canary",
        '{"a": "sk-canary", "a": "other"}',
        '{"a": "sk-canary"',
        "[" * 100_000,
        {},
        ["sk-canary"],
        {"a": []},
        {"a": ["sk-canary", 1]},
        {"a": {"key": "sk-canary"}},
        {"a": ""},
        {"a": "sk canary"},
        {"a": "sk-canary\n"},
        {"a": "sk-canary" * 200},
        {"a": "sha256:sk-canary"},
        {"a": "sha256:" + "0" * 63},
        {"sk-canary/x": "a"},
        {"": "sk-canary"},
        {"local\n": "sk-canary"},
        {"a": "sk-canary", "b": "sk-canary"},
        {"a": "sk-canary", "b": f"sha256:{sha256(b'sk-canary').hexdigest()}"},
    ],
)
def test_a_key_file_that_cannot_be_meant_is_refused_without_quoting_it(
    keys_file: Callable[[object], ServerConfig], content: object
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_keys(keys_file(content), {})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("text", ["sk-canary", "a=sk-canary,sk-canary2", "=sk-canary", "a="])
def test_an_environment_that_cannot_be_meant_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_keys(ServerConfig(), {"MINIMSG_API_KEYS": text})
    assert "canary" not in str(caught.value)


def test_a_key_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        open_keys(ServerConfig(keys_file=tmp_path / "none.json"), {})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.2", "example.org"])
def test_without_keys_a_server_that_others_reach_does_not_start(
    keys_file: Callable[[object], ServerConfig], host: str
) -> None:
    with pytest.raises(ConfigError, match=r"--keys-file.*--insecure"):
        open_keys(ServerConfig(host=host), {})
    assert open_keys(ServerConfig(host=host, insecure=True), {}).tenants == []
    assert open_keys(ServerConfig(host=host), {"MINIMSG_API_KEYS": "a=b"}).tenants == ["a"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert is_loopback(host)
    assert open_keys(ServerConfig(host=host), {}).tenants == []


def test_each_key_is_compared_whichever_of_them_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr(hmac, "compare_digest", compare)
    keys = Keys([("a", "first"), ("b", "second"), ("c", "third")])
    for key in ("first", "third"):
        keys.tenant({"x-api-key": key})
    with pytest.raises(Unauthorized):
        keys.tenant({"x-api-key": "x" * 10_000})
    assert compared == [(32, 32)] * 9


async def test_a_key_that_is_no_ascii_is_just_wrong(locked: Running) -> None:
    assert await status_of(locked, "GET", "/v1/models", x_api_key="é") == 401
    assert await status_of(locked, "GET", "/v1/models", authorization="Bearer é") == 401


def test_a_key_that_is_nearly_right_takes_as_long_as_any_other() -> None:
    keys = Keys([("alice", ALICE)])
    tries = {"first byte": "x" + ALICE[1:], "last byte": ALICE[:-1] + "x"}
    times: dict[str, list[int]] = {name: [] for name in tries}
    for _ in range(10_000):  # in turns, so that what else the machine does falls on both
        for name, key in tries.items():
            started = time.perf_counter_ns()
            with suppress(Unauthorized):
                keys.tenant({"x-api-key": key})
            times[name].append(time.perf_counter_ns() - started)
    first, last = (median(of_one) for of_one in times.values())
    assert abs(first - last) < 0.1 * first


async def test_the_tenants_name_goes_to_the_engine(
    locked: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    submit: Callable[..., Awaitable[Any]] = EngineWorker.submit

    def spy(self: EngineWorker, request: GenerationRequest) -> Awaitable[Any]:
        seen.append(request.tenant)
        return submit(self, request)

    monkeypatch.setattr(EngineWorker, "submit", spy)
    for key in (BOB, ALICE):
        async with AsyncAnthropic(base_url=locked.url, auth_token=key) as client:
            await client.messages.create(
                model="scripted", max_tokens=3, messages=[{"role": "user", "content": "go"}]
            )
    assert seen == ["bob", "alice"]


async def test_a_wrong_key_is_the_sdks_authentication_error(locked: Running) -> None:
    async with AsyncAnthropic(base_url=locked.url, api_key="wrong", max_retries=0) as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await client.models.list()
    assert (caught.value.status_code, caught.value.type) == (401, "authentication_error")
    assert caught.value.request_id is not None


async def test_a_key_is_in_no_log_and_no_answer_whatever_goes_wrong(
    locked: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answers = ""
    for headers in ({"x-api-key": ALICE}, {"authorization": f"Bearer {ALICE}"}):
        for body in (ask(PLAIN), {"model": ALICE[:3]}, "broken", ask(PLAIN, max_tokens=-1)):
            async with locked.session.post(
                f"{locked.url}/v1/messages", json=body, headers=headers
            ) as response:
                answers += await response.text() + str(response.headers)
    for wrong in (f"{ALICE}!", ALICE[:-1]):
        await status_of(locked, "POST", "/v1/messages", x_api_key=wrong)

    def crash(self: Server) -> None:
        raise LookupError(ALICE)

    monkeypatch.setattr(Server, "check_can_answer", crash)
    assert await status_of(locked, "POST", "/v1/messages", x_api_key=ALICE) == 500
    assert "LookupError" in caplog.text
    assert ALICE[:-1] not in caplog.text
    assert ALICE[:-1] not in answers
    assert ALICE not in repr(Keys([("alice", ALICE)])) + str(vars(Keys([("alice", ALICE)])))
