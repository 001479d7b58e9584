"""Prompt caching from the outside: what `usage` says, request by request.

Counts are those of the byte model, which reads `role\n`, the text and three ids a turn:
a mark's entry ends before the last word of its block.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import JsonValue

from minimsg.config import ServerConfig
from minimsg.server.messages import REUSED

from .conftest import ENGINE, Start
from .generated import count_body, examples
from .running import Json, Running, eventually

MARK: Final[Json] = {"type": "ephemeral"}
HOUR: Final[Json] = {"type": "ephemeral", "ttl": "1h"}
SYSTEM: Final = "You are a careful assistant, and you answer in one short sentence."
SYSTEM_LENGTH: Final = 1 + len("system\n") + len(SYSTEM) - len(".")  # of its entry


@dataclass(frozen=True)
class Counts:
    """The input side of a `usage`."""

    read: int = 0
    five_minutes: int = 0
    hour: int = 0
    others: int = 0

    @classmethod
    def of(cls, usage: Any) -> Counts:
        split = usage["cache_creation"]
        written = split["ephemeral_5m_input_tokens"], split["ephemeral_1h_input_tokens"]
        assert usage["cache_creation_input_tokens"] == sum(written)
        return cls(usage["cache_read_input_tokens"], *written, usage["input_tokens"])

    @property
    def sum(self) -> int:
        """All of the prompt."""
        return self.read + self.five_minutes + self.hour + self.others


def block(text: str, mark: JsonValue = None) -> Json:
    return {"type": "text", "text": text, **({"cache_control": mark} if mark else {})}


def body(*content: JsonValue, mark: JsonValue = MARK, **fields: JsonValue) -> Json:
    """A request with a marked system prompt."""
    messages: list[JsonValue] = [{"role": "user", "content": [*content] or "go"}]
    system: list[JsonValue] = [block(SYSTEM, mark)]
    return {
        "model": "scripted",
        "max_tokens": 1,
        "system": system,
        "messages": messages,
        **fields,
    }


async def counts(running: Running, request: Json) -> Counts:
    return Counts.of((await running.post(request))[0]["usage"])


def num_open(running: Running) -> int:
    stats = running.server.worker.stats()
    return stats.running + stats.waiting


async def test_the_first_request_writes_and_the_second_reads(scripted: Running) -> None:
    first, second = [await counts(scripted, body()) for _ in range(2)]
    assert (first.read, first.five_minutes, first.hour) == (0, SYSTEM_LENGTH, 0)
    assert second == Counts(read=SYSTEM_LENGTH, others=first.others)


async def test_what_is_written_is_split_by_the_time_it_is_kept(scripted: Running) -> None:
    request = body(block("one. two.", MARK), block("three"), mark=HOUR)
    first, second = [await counts(scripted, request) for _ in range(2)]
    assert first.hour == SYSTEM_LENGTH
    assert first.five_minutes > len("one. two")
    assert second == Counts(read=first.hour + first.five_minutes, others=first.others)


async def test_another_question_reads_the_system_prompt_and_writes_the_rest(
    scripted: Running,
) -> None:
    await counts(scripted, body(block("What is this?", MARK)))
    other = await counts(scripted, body(block("Who are you, friend?", MARK)))
    assert other.read == SYSTEM_LENGTH
    assert other.five_minutes > len("Who are you")


async def test_the_three_parts_are_the_count_whatever_is_marked(scripted: Running) -> None:
    bodies = [each for each in examples(60, "scripted") if "cache_control" in str(each)]
    assert len(bodies) >= 5
    for each in bodies[:12]:
        request: Json = {**each, "stop_sequences": ["e", "o"]}
        total, _ = await scripted.post(count_body(each), "/v1/messages/count_tokens")
        first, second = [await counts(scripted, request) for _ in range(2)]
        assert first.sum == second.sum == total["input_tokens"]
        assert second.read == first.read + first.five_minutes + first.hour


async def test_no_tenant_reads_what_another_has_written(start: Start, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"alice": "one", "bob": "two"}')
    running = await start(config=ServerConfig(keys_file=keys))
    said = []
    for key in ("one", "two", "one"):
        headers = {"x-api-key": key}
        url = running.url + "/v1/messages"
        async with running.session.post(url, json=body(), headers=headers) as response:
            usage = (await response.json())["usage"]
            said.append((Counts.of(usage).read, int(response.headers[REUSED])))
    assert said == [(0, 0), (0, 0), (SYSTEM_LENGTH, (Counts.of(usage).sum - 1) // 16 * 16)]


async def test_requests_that_come_together_all_write(start: Start) -> None:
    running = await start()
    with held(running):
        asked = [asyncio.create_task(counts(running, body())) for _ in range(4)]
        await eventually(lambda: num_open(running) == 4)
    assert {each.read for each in await asyncio.gather(*asked)} == {0}
    assert (await counts(running, body())).read == SYSTEM_LENGTH


async def test_the_numbers_come_at_once_while_the_engine_is_in_a_long_step(
    scripted: Running,
) -> None:
    await counts(scripted, body())
    with held(scripted):
        async with scripted.session.post(
            scripted.url + "/v1/messages", json=body(stream=True)
        ) as response:
            async with asyncio.timeout(5):
                start = await response.content.readuntil(b"\n\n")
            assert f'"cache_read_input_tokens":{SYSTEM_LENGTH}'.encode() in start.replace(b" ", b"")


async def test_the_end_of_a_stream_repeats_the_numbers_of_its_start(scripted: Running) -> None:
    for _ in range(2):
        events: Any = await scripted.stream(body())
        (delta,) = (each for each in events if each["type"] == "message_delta")
        started = events[0]["message"]["usage"]
        assert "cache_creation" not in delta["usage"]
        same = {key for key in started if key.endswith("input_tokens")}
        assert {key: delta["usage"][key] for key in same} == {key: started[key] for key in same}


async def test_an_entry_lives_for_its_time_after_its_last_use(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(scripted.server.worker.engine.cache.entries, "clock", lambda: now[0])
    reads = []
    for seconds in (0, 299, 299, 301):
        now[0] += seconds
        reads.append((await counts(scripted, body())).read)
    assert reads == [0, SYSTEM_LENGTH, SYSTEM_LENGTH, 0]
    assert (await counts(scripted, body(mark=HOUR))).read == SYSTEM_LENGTH
    now[0] += 3_599
    assert (await counts(scripted, body())).read == SYSTEM_LENGTH


async def test_a_request_for_no_tokens_fills_the_cache(scripted: Running) -> None:
    assert (await counts(scripted, body(max_tokens=0))).five_minutes == SYSTEM_LENGTH
    assert (await counts(scripted, body())).read == SYSTEM_LENGTH


async def test_without_a_cache_nothing_is_read_or_written(start: Start) -> None:
    running = await start(engine=replace(ENGINE, no_prefix_cache=True))
    for _ in range(2):
        message, response = await running.post(body())
        said = Counts.of(message["usage"])
        assert said == Counts(others=said.sum)
        assert response.headers[REUSED] == "0"


async def test_all_hits_are_reported_as_reads_if_asked_for(start: Start) -> None:
    running = await start(config=ServerConfig(report_all_hits=True))
    plain = body(mark=None)
    first, second = [await counts(running, plain) for _ in range(2)]
    assert first.read == 0
    assert second.read == (first.sum - 1) // 16 * 16
    assert second.sum == first.sum


async def test_reuse_without_marks_is_told_in_a_header_only(scripted: Running) -> None:
    answers = [await scripted.post(body(mark=None)) for _ in range(2)]
    said = [Counts.of(message["usage"]) for message, _ in answers]
    assert said == [Counts(others=said[0].sum)] * 2
    reused = [int(response.headers[REUSED]) for _, response in answers]
    assert reused == [0, (said[0].sum - 1) // 16 * 16]


@pytest.mark.parametrize(("budget", "pinned"), [(0.0, 0), (1.0, SYSTEM_LENGTH // 16)])
async def test_pins_hold_the_share_that_they_may(start: Start, budget: float, pinned: int) -> None:
    running = await start(engine=replace(ENGINE, pin_budget=budget))
    await counts(running, body())
    assert running.server.worker.stats().pinned_pages == pinned
    assert (await counts(running, body())).read == SYSTEM_LENGTH


async def test_a_mark_that_covers_too_little_writes_nothing(start: Start) -> None:
    running = await start(config=ServerConfig(min_cache_tokens=SYSTEM_LENGTH + 1))
    for _ in range(2):
        said = await counts(running, body())
        assert said == Counts(others=said.sum)


async def test_four_marks_write_four_entries_each_of_which_is_found(scripted: Running) -> None:
    texts = ["First of all.", "Then this.", "And this too."]
    await counts(scripted, body(*(block(text, MARK) for text in texts)))
    lengths = []
    for number in range(4):
        kept: list[JsonValue] = [block(text, MARK) for text in texts[:number]]
        lengths.append((await counts(scripted, body(*kept, block("Otherwise?")))).read)
    assert lengths == sorted(set(lengths))
    assert lengths[0] == SYSTEM_LENGTH


class held:
    """The engine is in a step that does not end before the block does."""

    def __init__(self, running: Running) -> None:
        self.engine, self.gate = running.server.worker.engine, threading.Event()
        self.run: Callable[..., Any] = self.engine.runner.run

    def __enter__(self) -> None:
        def run(batch: Any) -> Any:
            self.gate.wait(20)
            return self.run(batch)

        self.engine.runner.run = run  # type: ignore[method-assign]

    def __exit__(self, *exc_info: object) -> None:
        self.engine.runner.run = self.run  # type: ignore[method-assign]
        self.gate.set()
