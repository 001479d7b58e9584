"""The load of `minimsg bench`, against a server whose answers are known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from minimsg.bench.load import measure
from minimsg.bench.settings import LoadSettings
from minimsg.errors import ConfigError

from . import stand_in
from .stand_in import StandIn


@pytest.fixture
async def server() -> AsyncIterator[tuple[StandIn, LoadSettings]]:
    stand_in_server = StandIn()
    async with TestServer(stand_in_server.app()) as running:
        url = str(running.make_url("/"))
        yield stand_in_server, LoadSettings(url=url, streams="1,3", requests=6, prompt_tokens=50)


Running = tuple[StandIn, LoadSettings]


async def test_each_level_asks_its_requests_and_counts_by_usage(server: Running) -> None:
    seen, settings = server
    measured = await measure(settings)
    assert measured.model == "stand-in"
    assert [(level.streams, level.requests) for level in measured.levels] == [(1, 6), (3, 6)]
    for level in measured.levels:
        assert level.errors == {}
        assert level.input_tokens == 6 * stand_in.INPUT_TOKENS
        assert level.output_tokens == 6 * stand_in.OUTPUT_TOKENS
    assert len(seen.bodies) == 1 + 6 + 6, "one request to warm up"


async def test_so_many_streams_run_at_once_and_no_more(server: Running) -> None:
    seen, settings = server
    seen.delay_s = 0.02
    await measure(replace(settings, streams="4", requests=12))
    assert seen.most_running == 4


async def test_prompts_have_the_wanted_length_and_are_all_different(server: Running) -> None:
    seen, settings = server
    measured = await measure(settings)
    assert "calibrated" in measured.prompt_length
    prompts = [str(body["messages"]) for body in seen.bodies]
    assert len(set(prompts)) == len(prompts)
    texts = [body["messages"][0]["content"] for body in seen.bodies]  # type: ignore[index]
    assert {10 + 2 * len(text.split()) for text in texts} == {50}


async def test_a_server_that_cannot_count_is_measured_too(server: Running) -> None:
    seen, settings = server
    seen.counts_tokens = False
    measured = await measure(settings)
    assert "estimated" in measured.prompt_length
    assert measured.levels[0].requests == 6


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([stand_in.START, stand_in.DELTA], "stream ended without message_stop"),
        (
            [stand_in.START, {"type": "error", "error": {"type": "api_error", "message": "x"}}],
            "error event: api_error",
        ),
    ],
)
async def test_a_stream_without_its_end_is_an_error_not_a_figure(
    server: Running, events: list[stand_in.Event], kind: str
) -> None:
    seen, settings = server
    seen.after_warm_up = {"events": events}
    measured = await measure(settings)
    assert measured.levels[0].errors == {kind: 6}
    assert measured.levels[0].requests == 0


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"error": {"type": "overloaded_error"}}, "HTTP 529 overloaded_error"),
        ({"error": {"type": "\x1b[2J"}}, "HTTP 529 of unknown type"),
        ([], "HTTP 529 of unknown type"),
    ],
)
async def test_errors_are_counted_by_status_and_type(
    server: Running, answer: object, kind: str
) -> None:
    seen, settings = server
    seen.after_warm_up = {"status": 529, "answer": answer}
    measured = await measure(settings)
    assert measured.levels[0].errors == {kind: 6}


async def test_a_redirect_is_not_followed(server: Running) -> None:
    seen, settings = server
    seen.after_warm_up = {"status": 307}
    measured = await measure(settings)
    assert measured.levels[0].errors == {"HTTP 307 overloaded_error": 6}
    assert set(seen.paths) == {"/v1/messages"}


async def test_a_reply_that_takes_too_long_is_an_error(server: Running) -> None:
    seen, settings = server
    settings = replace(settings, request_timeout_s=0.2)
    seen.after_warm_up = {"delay_s": 5.0}
    measured = await measure(settings)
    assert measured.levels[0].errors == {"timeout": 6}


async def test_the_run_ends_when_its_time_is_over(server: Running) -> None:
    seen, settings = server
    settings = replace(settings, time_limit_s=0.2)
    seen.after_warm_up = {"delay_s": 5.0}
    measured = await measure(settings)
    assert measured.levels[0].errors == {"time limit of the run": 6}


async def test_where_nothing_listens_the_message_says_what_to_start() -> None:
    with pytest.raises(ConfigError, match="minimsg serve"):
        await measure(LoadSettings(url="http://127.0.0.1:9"))


async def test_a_server_that_refuses_the_first_request_is_not_measured(server: Running) -> None:
    seen, settings = server
    seen.status = 401
    seen.answer = {"error": {"type": "authentication_error"}}
    with pytest.raises(ConfigError, match="HTTP 401 authentication_error"):
        await measure(settings)


async def test_proxies_of_the_environment_are_not_asked(
    server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    _, settings = server
    assert (await measure(settings)).levels[0].errors == {}
