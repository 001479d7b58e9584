"""The engine's thread with real threads and event loops: nothing is lost, nothing is kept."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from minimsg.engine.token_stream import TokenStream
from minimsg.engine.types import Finish, FinishReason, GenerationRequest
from minimsg.engine.worker import EngineWorker
from minimsg.errors import GenerationFailed, InvalidRequest, Overloaded

from .working import GREEDY, Expected, Gate, ids_of, is_empty, request, running, until


async def test_a_stream_gives_the_tokens_and_then_knows_its_finish(
    make_engine: Any, expected: Expected
) -> None:
    async with running(make_engine()) as worker:
        stream = await worker.submit(request("r"))
        assert not stream.finish
        assert await ids_of(stream) == expected([1, 2, 3, 4, 5], 8)
        assert stream.finish == Finish("r", FinishReason.LENGTH)
        assert await ids_of(stream) == []


async def test_of_64_streams_30_percent_leave_and_the_rest_are_right(
    make_engine: Any, expected: Expected
) -> None:
    numbers = random.Random(1)
    async with running(make_engine(num_pages=40)) as worker:

        async def read(index: int) -> None:
            ids = [numbers.randrange(97) for _ in range(numbers.randrange(1, 60))]
            wanted, leaves_after = numbers.randrange(1, 40), numbers.randrange(0, 30)
            stream = await worker.submit(
                GenerationRequest(f"r{index}", ids, wanted, sampling=GREEDY)
            )
            if numbers.random() >= 0.3:
                assert await ids_of(stream) == expected(ids, wanted)
                return
            async with stream:
                if leaves_after:
                    async for _ in stream:
                        leaves_after -= 1
                        if not leaves_after:
                            break

        await asyncio.gather(*(read(index) for index in range(64)))
        await until(lambda: is_empty(worker))
        worker.engine.scheduler.check()


@pytest.mark.parametrize("read_before", [0, 1, 3])
async def test_a_reader_that_leaves_frees_its_pages_twenty_times(
    make_engine: Any, read_before: int
) -> None:
    async with running(make_engine(max_context=8192, num_pages=512)) as worker:
        for index in range(20):
            stream = await worker.submit(request(f"r{index}", num_ids=40, max_tokens=4000))
            for _ in range(read_before):
                await anext(stream)
            await stream.aclose()
            await stream.aclose()
        await until(lambda: is_empty(worker))


async def test_cancelling_while_queued_or_after_the_end_is_fine(
    make_engine: Any, model: Any
) -> None:
    gate = Gate(model)
    async with running(make_engine(max_sequences=1)) as worker:
        first = await worker.submit(request("first"))
        await gate.reached()
        queued = await worker.submit(request("queued"))
        await queued.aclose()
        gate.is_open.set()
        assert len(await ids_of(first)) == 8
        worker.cancel("first")
        worker.cancel("never heard of")
        assert len(await ids_of(await worker.submit(request("next")))) == 8
        assert is_empty(worker)


async def test_a_cancelled_request_is_told_so(make_engine: Any, model: Any) -> None:
    gate = Gate(model)
    async with running(make_engine()) as worker:
        stream = await worker.submit(request("r"))
        await gate.reached()
        worker.cancel("r")
        gate.is_open.set()
        assert len(await ids_of(stream)) <= 1
        assert stream.finish == Finish("r", FinishReason.CANCELLED)


async def test_a_stream_that_nobody_holds_is_cancelled(make_engine: Any) -> None:
    async with running(make_engine(max_context=8192, num_pages=512)) as worker:
        stream = await worker.submit(request("r", max_tokens=8000))
        await anext(stream)
        del stream
        gc.collect()
        await until(lambda: is_empty(worker))


async def test_one_request_more_than_may_wait_is_refused_with_a_time_to_retry(
    make_engine: Any, model: Any
) -> None:
    gate = Gate(model)
    async with running(make_engine(max_sequences=2), max_queue=3) as worker:
        streams = [await worker.submit(request(f"r{index}")) for index in range(5)]
        with pytest.raises(Overloaded) as refused:
            await worker.submit(request("r5"))
        assert int(refused.value.headers["retry-after"]) > 0
        gate.is_open.set()
        await asyncio.gather(*map(ids_of, streams))
        assert len(await ids_of(await worker.submit(request("r5")))) == 8


async def test_a_request_that_cannot_be_run_is_refused_at_once(make_engine: Any) -> None:
    async with running(make_engine()) as worker:
        for bad in ({"prompt_ids": [1] * 129}, {"prompt_ids": [97]}, {"max_tokens": -1}):
            with pytest.raises(InvalidRequest):
                await worker.submit(replace(request("r"), **bad))
        stream = await worker.submit(request("r"))
        with pytest.raises(InvalidRequest, match="already running"):
            await worker.submit(request("r"))
        assert len(await ids_of(stream)) == 8


async def test_a_failed_step_raises_in_its_stream_and_the_next_request_works(
    make_engine: Any, model: Any
) -> None:
    def fail(inputs: object) -> None:
        raise RuntimeError("out of memory")

    model.on_call = fail
    async with running(make_engine()) as worker:
        stream = await worker.submit(request("r"))
        with pytest.raises(GenerationFailed, match="out of memory"):
            await ids_of(stream)
        assert stream.finish is not None
        model.on_call = lambda inputs: None
        assert len(await ids_of(await worker.submit(request("r")))) == 8


async def test_the_heartbeat_ages_in_a_step_that_hangs_and_never_while_idle(
    make_engine: Any, model: Any
) -> None:
    async with running(make_engine()) as worker:
        await asyncio.sleep(0.03)
        assert worker.heartbeat_age_s == 0
        gate = Gate(model)
        stream = await worker.submit(request("r"))
        await gate.reached()
        await asyncio.sleep(0.05)
        assert worker.heartbeat_age_s >= 0.05
        assert worker.is_alive
        gate.is_open.set()
        await ids_of(stream)
        await until(lambda: worker.heartbeat_age_s == 0)


async def test_an_idle_thread_takes_no_turns(make_engine: Any) -> None:
    async with running(make_engine()) as worker:
        await ids_of(await worker.submit(request("r")))
        await until(lambda: worker.heartbeat_age_s == 0)
        before = (worker._beat, worker.stats().steps)
        await asyncio.sleep(0.05)
        assert (worker._beat, worker.stats().steps) == before


async def test_one_step_is_one_call_into_the_loop(
    make_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    calls: list[object] = []
    original = loop.call_soon_threadsafe

    def counting(callback: Callable[..., object], *args: Any, **kwargs: Any) -> asyncio.Handle:
        calls.append(callback)
        return original(callback, *args, **kwargs)

    async with running(make_engine()) as worker:
        monkeypatch.setattr(loop, "call_soon_threadsafe", counting)
        streams = [await worker.submit(request(f"r{index}")) for index in range(16)]
        await asyncio.gather(*map(ids_of, streams))
        assert 8 <= len(calls) <= worker.stats().steps < 40  # and not 16 x 9 outputs


async def test_stopping_with_time_lets_replies_end_and_takes_no_more(
    make_engine: Any, model: Any
) -> None:
    gate = Gate(model)
    async with running(make_engine()) as worker:
        stream = await worker.submit(request("r"))
        await gate.reached()
        stopping = asyncio.create_task(asyncio.to_thread(worker.stop, drain_s=5))
        await until(lambda: worker._is_stopping)
        with pytest.raises(Overloaded, match="shutting down"):
            await worker.submit(request("late"))
        gate.is_open.set()
        assert len(await ids_of(stream)) == 8
        await stopping
        assert not worker.is_alive
        assert is_empty(worker)


async def test_stopping_again_without_time_ends_a_long_drain(make_engine: Any) -> None:
    async with running(make_engine(max_context=8192, num_pages=512)) as worker:
        stream = await worker.submit(request("r", max_tokens=8000))
        await anext(stream)
        stopping = asyncio.create_task(asyncio.to_thread(worker.stop, drain_s=60))
        await asyncio.sleep(0.02)
        assert worker.is_alive
        worker.stop()
        await stopping
        await ids_of(stream)
        assert stream.finish == Finish("r", FinishReason.CANCELLED)
        assert is_empty(worker)


async def test_a_worker_that_never_started_stops(make_engine: Any) -> None:
    EngineWorker(make_engine(), 1).stop()


async def test_several_event_loops_share_one_engine(make_engine: Any, expected: Expected) -> None:
    async with running(make_engine()) as worker:

        async def ask(id: str) -> list[int]:
            return await ids_of(await worker.submit(request(id)))

        elsewhere = [asyncio.to_thread(asyncio.run, ask(f"loop {index}")) for index in range(3)]
        answers = await asyncio.gather(*elsewhere, ask("here"))
        assert answers == [expected([1, 2, 3, 4, 5], 8)] * 4


async def test_a_loop_that_closes_over_its_streams_frees_them(make_engine: Any) -> None:
    async with running(make_engine(max_context=8192, num_pages=512)) as worker:
        kept: list[TokenStream] = []

        async def leave() -> None:
            kept.append(await worker.submit(request("r", max_tokens=8000)))

        await asyncio.to_thread(asyncio.run, leave())
        await until(lambda: is_empty(worker))
        assert worker.is_alive


async def test_a_reader_who_is_behind_can_be_cancelled_amid_what_is_there(
    make_engine: Any,
) -> None:
    """As by Ctrl-C in a chat: without a wait between tokens it would read to the end."""
    async with running(make_engine()) as worker:
        stream = await worker.submit(request("a", max_tokens=8))
        await until(lambda: is_empty(worker))
        await asyncio.sleep(0.05)  # every token lies in the queue
        read: list[int] = []

        async def read_all() -> None:
            async for token in stream:
                read.append(token.id)

        reader = asyncio.create_task(read_all())
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert len(read) < 8
