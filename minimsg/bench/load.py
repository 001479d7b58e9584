"""The load of `minimsg bench`: a closed loop of N streams against a Messages server.

Each stream sends its next request when its last one is answered. Bounded in requests
and in time. One request is timed in `target.py`; the figures are made of the
samples in `report.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import Final, Protocol

import aiohttp

from minimsg.bench import prompts
from minimsg.bench.report import Level, summarize
from minimsg.bench.sample import Sample
from minimsg.bench.settings import LoadSettings
from minimsg.bench.target import FAILURES, Target, failure_kind
from minimsg.errors import ConfigError

TIME_LIMIT_S: Final = 300.0


@dataclass(frozen=True)
class Measured:
    """What came out."""

    model: str
    prompt_length: str  # how the wanted length was met
    levels: list[Level]


class Texts(Protocol):
    """Prompts by number."""

    def __getitem__(self, number: int, /) -> str: ...


@dataclass(frozen=True)
class Prompts:
    """A different prompt for each number, all of the same length."""

    words: int
    first_seed: int = 0

    def __getitem__(self, number: int) -> str:
        return prompts.words(self.words, self.first_seed + number)


async def measure(plan: LoadSettings) -> Measured:
    """Calibrate, warm up, then run every level. Raises ConfigError if nothing answers."""
    async with open_session(plan.request_timeout_s, plan.api_key) as session:
        target = Target(session, plan.url, plan.model or "")
        target.model = plan.model or await first_model(target)
        words, how = await _prompt_words(target, plan.prompt_tokens)
        await _warm_up(target, Prompts(words)[0], plan.max_tokens)
        return Measured(target.model, how, await _run_levels(target, words, plan))


def open_session(request_timeout_s: float, api_key: str | None = None) -> aiohttp.ClientSession:
    """A session for any number of streams; to be closed."""
    key = {"x-api-key": api_key} if api_key else {}
    return aiohttp.ClientSession(
        headers={"anthropic-version": "2023-06-01"} | key,
        timeout=aiohttp.ClientTimeout(total=request_timeout_s),
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def _run_levels(target: Target, words: int, plan: LoadSettings) -> list[Level]:
    deadline = perf_counter() + (TIME_LIMIT_S if plan.time_limit_s is None else plan.time_limit_s)
    levels: list[Level] = []
    seed = 1  # 0 was the warm-up
    for streams in plan.levels:
        requests = max(plan.requests, streams)
        levels.append(
            await run_level(
                target, streams, requests, Prompts(words, seed), plan.max_tokens, deadline
            )
        )
        seed += requests
    return levels


async def run_level(
    target: Target, streams: int, requests: int, prompts: Texts, max_tokens: int, deadline: float
) -> Level:
    """The figures of one number of streams."""
    start = perf_counter()
    samples, errors = await run_streams(target, streams, requests, prompts, max_tokens, deadline)
    return summarize(streams, samples, errors, perf_counter() - start)


async def run_streams(
    target: Target, streams: int, requests: int, prompts: Texts, max_tokens: int, deadline: float
) -> tuple[list[Sample], Counter[str]]:
    """`streams` at once; each has the same share of the requests, so that none runs ahead."""
    samples: list[Sample] = []
    errors: Counter[str] = Counter()

    async def stream(share: range) -> None:
        for number in share:
            try:
                async with asyncio.timeout(deadline - perf_counter()):
                    samples.append(await target.ask(prompts[number], max_tokens))
            except FAILURES as failure:
                is_over = perf_counter() >= deadline
                errors["time limit of the run" if is_over else failure_kind(failure)] += 1

    await asyncio.gather(*(stream(range(s, requests, streams)) for s in range(streams)))
    return samples, errors


async def first_model(target: Target) -> str:
    try:
        return await target.first_model()
    except FAILURES as failure:
        raise ConfigError(
            f"{target.url} lists no model ({failure_kind(failure)}). Start a server there "
            "(minimsg serve), or name the model with --model if the server cannot list it."
        ) from failure


async def _prompt_words(target: Target, tokens: int) -> tuple[int, str]:
    """Words of a prompt of about `tokens` tokens, by the server's own count where it has one."""
    try:
        words = await prompts.words_for(tokens, target.count_tokens)
    except FAILURES as failure:
        why = failure_kind(failure)
        return prompts.words_by_rule(tokens), f"estimated, count_tokens failed: {why}"
    return words, "calibrated with count_tokens"


async def _warm_up(target: Target, prompt: str, max_tokens: int) -> None:
    """One request that is not counted; if it fails, all would."""
    try:
        await target.ask(prompt, max_tokens)
    except FAILURES as failure:
        raise ConfigError(
            f"{target.url} did not answer a first request to model {target.model!r}: "
            f"{failure_kind(failure)}"
        ) from failure
