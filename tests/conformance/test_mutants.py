"""Servers that do one thing wrong are found, and the rule that they break is named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack

import aiohttp
import pytest

from minimsg.conformance.catalog import load_cases, select
from minimsg.conformance.runner import applicable
from minimsg.conformance.score import Catch, score
from minimsg.conformance.settings import Settings
from minimsg.errors import ConfigError
from minimsg.misbehave.catalog import MUTANTS, find
from minimsg.misbehave.faults import parse_faults
from minimsg.misbehave.proxy import PASSES_ON, Proxy

from .conftest import Serve, listen

FEW = {  # mutant -> cases that are enough to find it
    "no-names": "stream.names.text",
    "other-envelope": "errors.envelope*",
    "count-without-tools": "count.usage.tools*",
    "unknown-blocks-taken": "blocks.refused.unknown*",
    "for-some-taken": "citations.all-or-none.documents",
}
BODY = {
    "model": "scripted",
    "max_tokens": 16,
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
}


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def catches(
    url: str, names: Iterable[str], patterns: Sequence[str], stack: AsyncExitStack
) -> list[Catch]:
    proxy = Proxy(url)
    before = await listen(stack, proxy.runner())

    def switch(name: str | None) -> None:
        proxy.mutant = MUTANTS[name] if name else PASSES_ON

    cases = applicable(select(load_cases(), patterns), "compat")
    topics = {name: MUTANTS[name].topic for name in names}
    return [catch async for catch in score(cases, Settings(before), topics, switch)]


async def test_some_mutants_are_caught_and_named(serve: Serve, stack: AsyncExitStack) -> None:
    found = await catches(await serve("tiny"), FEW, [*FEW.values()], stack)
    assert [catch.line for catch in found if not catch.is_named] == []
    assert len(found) == len(FEW)


@pytest.mark.proof
@pytest.mark.timeout(3_600)
async def test_at_least_97_of_100_mutants_are_caught(serve: Serve, stack: AsyncExitStack) -> None:
    found = await catches(await serve("thinking"), MUTANTS, (), stack)
    missed = [catch.line for catch in found if not catch.is_named]
    assert len(found) == len(MUTANTS)
    assert len(missed) <= 0.03 * len(found), missed


def test_there_are_mutants_of_every_kind_each_with_a_title() -> None:
    for kind in ("request", "answer", "events", "frames"):
        assert any(getattr(mutant, kind) for mutant in MUTANTS.values()), kind
    assert all(mutant.title and mutant.topic for mutant in MUTANTS.values())
    assert len({mutant.title for mutant in MUTANTS.values()}) == len(MUTANTS)


def test_an_unknown_mutant_or_fault_is_refused() -> None:
    with pytest.raises(ConfigError, match="no-names"):
        find("sings")
    for text in ("sings", "overloaded:2", "drop@event:x"):
        with pytest.raises(ConfigError):
            parse_faults(text)


def test_several_faults_are_joined_by_commas() -> None:
    faults = parse_faults("overloaded:0.2,drop@event:5,slow")
    statuses = [faults.status() for _ in range(1_000)]
    assert (faults.drop_at, faults.slow_s) == (5, 0.2)
    assert (529, "overloaded_error") in statuses[:5]
    assert 150 < statuses.count((529, "overloaded_error")) < 250
    assert statuses.count(None) == 1_000 - statuses.count((529, "overloaded_error"))


async def ask(url: str) -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/messages", json=BODY) as response,
    ):
        received = b""
        try:
            async for piece in response.content.iter_any():
                received += piece
        except aiohttp.ClientPayloadError:
            received += b"(broken off)"
        return response.status, received


@pytest.mark.parametrize(
    ("faults", "status", "end"),
    [
        ("", 200, b'"message_stop"}\n\n'),
        ("overloaded:1", 529, b"}"),
        ("limited:1", 429, b"}"),
        ("broken:1", 500, b"}"),
        ("drop@event:3", 200, b"(broken off)"),
        ("error@event:3", 200, b"}\n\n"),
        ("slow:0.001", 200, b'"message_stop"}\n\n'),
    ],
)
async def test_faults_are_what_they_say(
    serve: Serve, stack: AsyncExitStack, faults: str, status: int, end: bytes
) -> None:
    proxy = Proxy(await serve("scripted"), faults=parse_faults(faults))
    seen = await ask(await listen(stack, proxy.runner()))
    assert seen[0] == status
    assert seen[1].endswith(end), seen
    if "@event:3" in faults:
        assert seen[1].count(b"event:") == (2 if "drop" in faults else 3)
