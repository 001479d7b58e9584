"""An engine that fails as a whole: every stream ends, and the worker sets it up anew."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from minimsg.engine.engine import Engine
from minimsg.engine.restarts import Restarts
from minimsg.engine.token_stream import TokenStream
from minimsg.engine.types import GenerationRequest
from minimsg.engine.worker import EngineWorker
from minimsg.errors import GenerationFailed, Overloaded

from .working import GREEDY, Expected, Gate, ids_of, is_empty, request, running, until

PROMPT = [1, 2, 3, 4, 5]


def soon() -> Restarts:
    """Pauses that a test can wait for, and see."""
    return Restarts(first_pause_s=0.1)


def fail_once(engine: Engine, failure: BaseException) -> None:
    """Let the next commit raise; an engine that was set up anew has a sound one."""

    def broken(*args: object) -> None:
        raise failure

    engine.scheduler.commit = broken  # type: ignore[method-assign, assignment]


async def fail(worker: EngineWorker) -> None:
    """Let the engine of an idle worker fail, and wait until it has."""
    fail_once(worker.engine, ZeroDivisionError("an invariant of ours"))
    with pytest.raises(GenerationFailed, match="an invariant of ours"):
        await ids_of(await worker.submit(request("the last one")))


@pytest.mark.parametrize("kind", [ZeroDivisionError, MemoryError, SystemExit, GeneratorExit])
async def test_every_stream_hears_of_it_and_the_next_request_is_answered(
    make_engine: Any, model: Any, expected: Expected, kind: type[BaseException]
) -> None:
    gate = Gate(model)
    engine = make_engine(max_sequences=2)
    async with running(engine, restarts=soon()) as worker:
        streams = [await worker.submit(request(f"r{index}")) for index in range(4)]
        await gate.reached()
        streams.append(await worker.submit(request("order not taken")))
        fail_once(engine, kind("broken"))
        gate.is_open.set()
        for stream in streams:
            with pytest.raises(GenerationFailed, match=f"{kind.__name__}: broken"):
                await ids_of(stream)
        assert not worker.is_alive
        assert not worker.is_over
        await until(lambda: worker.is_alive)
        assert is_empty(worker)
        assert await ids_of(await worker.submit(request("r0"))) == expected(PROMPT, 8)
        engine.scheduler.check()
        assert worker.stats().restarts == 1


async def test_in_the_pause_requests_are_refused_with_the_time_that_is_left(
    make_engine: Any,
) -> None:
    async with running(make_engine(), restarts=Restarts(first_pause_s=30)) as worker:
        await fail(worker)
        with pytest.raises(Overloaded, match="started again") as refused:
            await worker.submit(request("late"))
        assert 28 <= int(refused.value.headers["retry-after"]) <= 30
        await until(lambda: is_empty(worker))


async def test_a_worker_stops_in_the_pause_at_once(make_engine: Any) -> None:
    async with running(make_engine(), restarts=Restarts(first_pause_s=30)) as worker:
        await fail(worker)
        started = time.monotonic()
        await asyncio.to_thread(worker.stop, drain_s=20)
        assert time.monotonic() - started < 5
        assert worker.is_over


async def test_what_is_cancelled_in_the_pause_harms_nobody(make_engine: Any) -> None:
    async with running(make_engine(), restarts=soon()) as worker:
        await fail(worker)
        worker.cancel("the last one")
        worker.cancel("never heard of")
        await until(lambda: worker.is_alive)
        assert len(await ids_of(await worker.submit(request("next")))) == 8


async def test_a_loop_that_closed_over_its_streams_does_not_keep_others_from_theirs(
    make_engine: Any, model: Any
) -> None:
    gate = Gate(model)
    engine = make_engine()
    async with running(engine, restarts=soon()) as worker:
        kept: list[TokenStream] = []

        async def leave() -> None:
            kept.append(await worker.submit(request("closed")))

        await asyncio.to_thread(asyncio.run, leave())
        stream = await worker.submit(request("open"))
        await gate.reached()
        fail_once(engine, ZeroDivisionError())
        gate.is_open.set()
        with pytest.raises(GenerationFailed):
            await ids_of(stream)
        await until(lambda: worker.is_alive and is_empty(worker))


async def test_a_failure_amid_the_telling_leaves_no_stream_without_its_end(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All end in one step, and just then nothing can be said."""
    async with running(make_engine(), restarts=soon()) as worker:

        def full(*args: object) -> None:
            monkeypatch.undo()
            raise MemoryError("no room for a list")

        monkeypatch.setattr("minimsg.engine.worker.deliver", full)
        worker.pause()  # or the first ends before the others have come
        streams = [await worker.submit(request(f"r{index}", max_tokens=1)) for index in range(3)]
        worker.resume()
        async with asyncio.timeout(5):
            for stream in streams:
                with pytest.raises(GenerationFailed, match="no room for a list"):
                    await ids_of(stream)


async def test_the_fifth_failure_within_ten_minutes_is_the_last(make_engine: Any) -> None:
    async with running(make_engine(), restarts=Restarts(first_pause_s=0.01)) as worker:
        for _ in range(4):
            await until(lambda: worker.is_alive)
            await fail(worker)
        await until(lambda: worker.is_alive)
        await fail(worker)
        assert worker.is_over
        with pytest.raises(GenerationFailed, match="an invariant of ours"):
            await worker.submit(request("late"))
        assert worker.stats().restarts == 4


async def test_an_engine_that_cannot_be_set_up_anew_ends_the_worker(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine()
    async with running(engine, restarts=soon()) as worker:

        def refuse() -> None:
            raise MemoryError("too big")

        monkeypatch.setattr(engine, "reset", refuse)
        await fail(worker)
        await until(lambda: worker.is_over)
        with pytest.raises(GenerationFailed):
            await worker.submit(request("late"))


async def test_totals_only_grow_over_a_restart(make_engine: Any) -> None:
    """Two sequences that need more pages than there are: one of them is preempted."""
    long = [GenerationRequest(f"r{i}", [i + 1] * 40, 80, sampling=GREEDY) for i in range(2)]
    async with running(make_engine(num_pages=9), restarts=soon()) as worker:
        for each in [await worker.submit(request) for request in long]:
            await ids_of(each)
        before = worker.stats()
        assert before.preemptions > 0
        assert before.prefix_queries == 80
        await fail(worker)
        await until(lambda: worker.is_alive)
        after = worker.stats()
        assert (after.preemptions, after.prefix_queries) == (before.preemptions, 80)
        assert after.steps >= before.steps


def test_pauses_double_and_the_fifth_failure_has_none() -> None:
    restarts = Restarts()
    assert [restarts.pause_s(now) for now in (0, 10, 20, 30, 40)] == [1, 2, 4, 8, None]


def test_failures_of_more_than_ten_minutes_ago_do_not_count() -> None:
    restarts = Restarts()
    assert [restarts.pause_s(now) for now in (0, 100, 200, 300, 650)] == [1, 2, 4, 8, 8]
    assert restarts.pause_s(5_000) == 1
