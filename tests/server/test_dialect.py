"""What the headers of a request make of it, in both profiles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from anthropic.types import AnthropicBetaParam
from multidict import CIMultiDict, CIMultiDictProxy

from minimsg.config import ServerConfig
from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.dialect import NEW, OLD, Dialect
from minimsg.server.dialect import from_headers

from .conftest import Start
from .running import PLAIN, ask
from .test_errors import fail

COMPAT, STRICT = ServerConfig(), ServerConfig(profile="strict")
VERSION = ("anthropic-version", OLD)


def read(config: ServerConfig, *headers: tuple[str, str]) -> Dialect:
    return from_headers(CIMultiDictProxy(CIMultiDict(headers)), config)


def refusal(config: ServerConfig, *headers: tuple[str, str]) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read(config, *headers)
    return caught.value.message


@pytest.mark.parametrize("config", [COMPAT, STRICT])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_both_versions_on_the_wire_are_known(config: ServerConfig, version: str) -> None:
    assert read(config, ("Anthropic-Version", version)).version == version


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([], "anthropic-version: header is required"),
        ([("anthropic-version", "")], "anthropic-version: header is required"),
        (
            [("anthropic-version", "2023-01-01")],
            'anthropic-version: "2023-01-01" is not a valid version',
        ),
        (
            [VERSION, VERSION],
            'anthropic-version: "2023-06-01, 2023-06-01" is not a valid version',
        ),
    ],
)
def test_any_other_version_is_the_older_one_or_refused_as_reported_of_the_hosted_api(
    headers: list[tuple[str, str]], message: str
) -> None:
    assert read(COMPAT, *headers).version == OLD
    assert refusal(STRICT, *headers) == message


def test_betas_may_come_in_lists_and_in_several_headers() -> None:
    headers = [
        ("anthropic-beta", "skills-2025-10-02,pdfs-2024-09-25"),
        ("Anthropic-Beta", " effort-2025-11-24 ,, skills-2025-10-02"),
    ]
    betas = {"skills-2025-10-02", "pdfs-2024-09-25", "effort-2025-11-24"}
    assert read(COMPAT, *headers).betas == betas
    assert read(STRICT, VERSION, *headers).betas == betas


def test_a_beta_that_nobody_knows_is_skipped_or_refused() -> None:
    header = ("anthropic-beta", "foo-2099-01-01,pdfs-2024-09-25,Skills-2025-10-02")
    assert read(COMPAT, header).betas == {"pdfs-2024-09-25"}
    assert refusal(STRICT, VERSION, header) == (
        "Unexpected value(s) `Skills-2025-10-02`, `foo-2099-01-01` for the `anthropic-beta` header."
    )


@pytest.mark.parametrize("name", get_args(get_args(AnthropicBetaParam)[1]))
def test_every_beta_of_the_official_sdk_is_known(name: str) -> None:
    assert read(STRICT, VERSION, ("anthropic-beta", name)).betas == {name}


def recorded_betas(folder: Path) -> Iterator[str]:
    """The beta headers that real clients sent."""
    for file in sorted(folder.glob("recordings/*.json")):
        headers = json.loads(file.read_text()).get("headers", [])
        yield from (value for name, value in headers if name.lower() == "anthropic-beta")


def test_no_client_that_was_recorded_is_locked_out(test_data: Path) -> None:
    sent = set(recorded_betas(test_data))
    assert any("claude-code-20250219" in header for header in sent)
    for header in sent:
        assert read(STRICT, VERSION, ("anthropic-beta", header)).betas == set(header.split(","))


def test_the_number_of_betas_is_bounded() -> None:
    many = ",".join(f"x-{number}" for number in range(LIMITS.betas + 1))
    for config in (COMPAT, STRICT):
        assert f"{LIMITS.betas + 1} names > {LIMITS.betas} maximum" in refusal(
            config, VERSION, ("anthropic-beta", many)
        )


def test_features_are_off_by_configuration() -> None:
    assert read(COMPAT).can("context-management")
    assert not read(ServerConfig(without=("context-management",))).can("context-management")


async def test_headers_are_checked_in_order_and_before_the_body(
    start: Start, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"alice": "sk-alice"}')
    running = await start(config=ServerConfig(profile="strict", keys_file=keys))
    headers = {"anthropic-beta": "foo", "content-type": "text/plain"}
    seen = []
    for more in ({"x-api-key": "sk-alice"}, {"anthropic-version": OLD}, {"anthropic-beta": ""}):
        _, error, _ = await fail(running, data=b"{", headers=headers)
        seen.append(error["message"].split(":")[0])
        headers |= more
    assert seen == [
        "x-api-key header is required",
        "anthropic-version",
        ("Unexpected value(s) `foo` for the `anthropic-beta` header."),
    ]
    status, _, _ = await fail(running, data=b"{", headers=headers)
    assert status == 415


async def test_the_routes_of_the_hosted_api_ask_for_a_version_and_others_do_not(
    start: Start,
) -> None:
    running = await start(config=STRICT)
    for path, status in (("/", 200), ("/health", 200), ("/v1/models", 400), ("/models/x", 400)):
        async with running.session.get(running.url + path) as response:
            assert response.status == status, path
    for route in ("/v1/messages", "/messages/count_tokens"):
        status, error, _ = await fail(running, path=route, json=ask(PLAIN))
        assert (status, error["message"]) == (400, "anthropic-version: header is required")
