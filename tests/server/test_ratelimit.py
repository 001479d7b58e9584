"""Limits of a tenant: when there is more, what every answer says of it, and what it costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anthropic
import pytest
from anthropic import AsyncAnthropic
from hypothesis import given
from hypothesis import strategies as st

from minimsg.config import ServerConfig
from minimsg.errors import RateLimited
from minimsg.server.ratelimit import COUNTS, MESSAGES, RateLimits

from .conftest import Start
from .running import PLAIN, Json, ask
from .test_errors import fail

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Watch:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)


def limits(requests: int | None = None, tokens: int | None = None) -> tuple[RateLimits, Watch]:
    watch = Watch()
    return RateLimits(requests, tokens, clock=watch, now=watch.now), watch


def wait_of(admit: Callable[[], None]) -> int:
    """The seconds after which a refused request may be tried again."""
    with pytest.raises(RateLimited) as caught:
        admit()
    assert f"try again in {caught.value.headers['retry-after']} s" in caught.value.message
    return int(caught.value.headers["retry-after"])


def test_a_minutes_requests_may_come_at_once_and_then_one_by_one() -> None:
    rates, watch = limits(requests=6)
    for _ in range(6):
        rates.admit("alice")
    assert wait_of(lambda: rates.admit("alice")) == 10
    watch.seconds = 9.5
    assert wait_of(lambda: rates.admit("alice")) == 1
    watch.seconds = 10
    rates.admit("alice")
    assert wait_of(lambda: rates.admit("alice")) == 10


def test_tenants_and_counting_have_buckets_of_their_own() -> None:
    rates, _ = limits(requests=1)
    for tenant in ("alice", "bob"):
        for kind in (MESSAGES, COUNTS):
            rates.admit(tenant, kind)
            with pytest.raises(RateLimited):
                rates.admit(tenant, kind)


def test_without_limits_nothing_is_refused_and_nothing_said() -> None:
    rates, _ = limits()
    rates.admit("alice")
    rates.admit_prompt("alice", 10**9)
    rates.spend("alice", 10**9)
    assert rates.headers("alice") == {}


def test_a_reply_is_paid_afterwards_and_its_debt_waited_for() -> None:
    rates, watch = limits(tokens=600)
    rates.admit_prompt("alice", 500)
    rates.spend("alice", 200)
    assert wait_of(lambda: rates.admit_prompt("alice", 50)) == 15
    watch.seconds = 15
    rates.admit_prompt("alice", 50)


def test_a_prompt_over_the_limit_waits_for_a_full_bucket() -> None:
    rates, watch = limits(tokens=600)
    rates.admit_prompt("alice", 60)
    assert wait_of(lambda: rates.admit_prompt("alice", 900)) == 6
    watch.seconds = 6
    rates.admit_prompt("alice", 900)
    assert wait_of(lambda: rates.admit_prompt("alice", 60)) == 36


def test_a_refused_prompt_costs_nothing() -> None:
    rates, _ = limits(tokens=600)
    rates.admit_prompt("alice", 500)
    with pytest.raises(RateLimited):
        rates.admit_prompt("alice", 101)
    rates.admit_prompt("alice", 100)


def test_headers_say_what_is_left_and_when_all_is_back() -> None:
    rates, watch = limits(requests=6, tokens=600)
    rates.admit("alice")
    rates.admit_prompt("alice", 100)
    rates.spend("alice", 1)
    watch.seconds = 0.25
    assert rates.headers("alice") == {
        "anthropic-ratelimit-requests-limit": "6",
        "anthropic-ratelimit-requests-remaining": "5",
        "anthropic-ratelimit-requests-reset": "2026-11-29T12:00:10Z",
        "anthropic-ratelimit-tokens-limit": "600",
        "anthropic-ratelimit-tokens-remaining": "501",
        "anthropic-ratelimit-tokens-reset": "2026-11-29T12:00:11Z",  # in 10.1 s
    }
    rates.spend("alice", 10_000)
    assert rates.headers("alice")["anthropic-ratelimit-tokens-remaining"] == "0"


@given(
    st.integers(1, 1_000),
    st.lists(st.tuples(st.floats(0, 100), st.integers(1, 1_500)), min_size=1, max_size=20),
)
def test_after_the_time_that_was_said_the_same_prompt_is_taken(
    per_minute: int, prompts: list[tuple[float, int]]
) -> None:
    rates, watch = limits(tokens=per_minute)
    taken = 0
    for pause_s, tokens in prompts:
        watch.seconds += pause_s
        try:
            rates.admit_prompt("alice", tokens)
        except RateLimited as refused:
            watch.seconds += int(refused.headers["retry-after"])
            rates.admit_prompt("alice", tokens)
        taken += min(tokens, per_minute)
    assert taken <= math.ceil(per_minute * (1 + watch.seconds / 60) + 1e-3)


async def test_a_limit_over_http_is_the_sdks_rate_limit_error(start: Start, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"alice": ["one", "two"], "bob": "three"}')
    config = ServerConfig(keys_file=keys, requests_per_minute=2)
    running = await start(config=config)

    async def create(key: str) -> None:
        async with AsyncAnthropic(base_url=running.url, api_key=key, max_retries=0) as client:
            await client.messages.create(
                model="scripted", max_tokens=1, messages=[{"role": "user", "content": "go"}]
            )

    await create("one")
    await create("two")  # another key of the same tenant
    with pytest.raises(anthropic.RateLimitError) as caught:
        await create("one")
    assert caught.value.type == "rate_limit_error"
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 30
    assert caught.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
    await create("three")


async def test_a_refused_request_is_not_read(start: Start) -> None:
    running = await start(config=ServerConfig(requests_per_minute=1))
    await fail(running, data=b"{", headers={"content-type": "application/json"})
    status, error, _ = await fail(running, data=b"{", headers={"content-type": "text/plain"})
    assert (status, error["type"]) == (429, "rate_limit_error")


async def test_an_answer_says_what_is_left_of_its_tenants_limits(start: Start) -> None:
    running = await start(config=ServerConfig(requests_per_minute=5, tokens_per_minute=4_000))
    started = time.monotonic()
    answer, response = await running.post(ask(PLAIN))
    refilled = (time.monotonic() - started) * 4_000 / 60
    assert -1 <= left(response.headers) - (4_000 - tokens_of(answer)) <= refilled
    async with running.session.get(f"{running.url}/v1/models") as listed:
        assert listed.headers["anthropic-ratelimit-requests-remaining"] == "4"
    _, _, missing = await fail(running, "GET", "/nowhere")
    assert missing["anthropic-ratelimit-requests-limit"] == "5"
    async with running.session.get(f"{running.url}/health") as health:
        assert "anthropic-ratelimit-requests-limit" not in health.headers


async def test_a_stream_is_paid_when_it_ends(start: Start) -> None:
    running = await start(config=ServerConfig(tokens_per_minute=4_000))
    plain, _ = await running.post(ask(PLAIN))
    before = running.server.rates.headers("local")
    started = time.monotonic()
    await running.stream(ask(PLAIN))
    _, _, after = await fail(running, "GET", "/nowhere")
    refilled = (time.monotonic() - started) * 4_000 / 60
    assert -1 <= left(after) - (left(before) - tokens_of(plain)) <= refilled + 1


async def test_counting_tokens_costs_none_and_has_its_own_requests(start: Start) -> None:
    running = await start(config=ServerConfig(requests_per_minute=1, tokens_per_minute=4_000))
    question = {"model": "scripted", "messages": [{"role": "user", "content": "go"}]}
    path = "/v1/messages/count_tokens"
    await running.post(question, path)
    _, response = await running.post(question, path, status=429)
    assert left(response.headers) == 4_000
    await running.post(ask(PLAIN))


def left(headers: Mapping[str, str]) -> int:
    return int(headers["anthropic-ratelimit-tokens-remaining"])


def tokens_of(answer: Json) -> int:
    usage = answer["usage"]
    assert isinstance(usage, dict)
    return int(str(usage["input_tokens"])) + int(str(usage["output_tokens"]))
