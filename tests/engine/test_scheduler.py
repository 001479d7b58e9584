"""The scheduler without a model: what may happen in any order, and what must always hold."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine.entries import Entries
from minimsg.engine.pages import PagePool
from minimsg.engine.prefix import PrefixIndex
from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.types import (
    Admitted,
    Batch,
    CacheCounts,
    CacheMark,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    Priority,
    Sampled,
    Sequence,
    Token,
)
from minimsg.errors import InvalidRequest

PAGE_SIZE = 4
WINDOW = 20
END = 0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def make_scheduler(
    *,
    num_pages: int = 5,
    max_step_tokens: int = 64,
    max_sequences: int = 4,
    clock: Callable[[], float] = time.monotonic,
) -> Scheduler:
    pool = PagePool(num_pages)
    index = PrefixIndex(pool, PAGE_SIZE)
    return Scheduler(
        PromptCache(pool, index, Entries(index, num_pages // 2, clock)),
        max_context=WINDOW,
        max_step_tokens=max_step_tokens,
        max_sequences=max_sequences,
    )


def sequence(id: str, num_ids: int, max_tokens: int = 5, first: int = 1) -> Sequence:
    """Prompts whose `first` differ share nothing."""
    ids = list(range(first, first + num_ids))
    request = GenerationRequest(id, ids, max_tokens, frozenset({END}))
    return Sequence(request, list(ids))


def tokens(batch: Batch, id: int = 7) -> list[list[Sampled]]:
    return [[Token(request_id, id, 0.0)] for request_id in batch.sample_ids]


STREAMS = ([1] * WINDOW, [1, 2] * (WINDOW // 2), [1, 1, 1, 1, 2, 2, 2, 2] * 3)


@st.composite
def prompts(draw: st.DrawFn) -> list[int]:
    """Prompts that share, branch from and shorten each other."""
    stem = draw(st.sampled_from(STREAMS))[: draw(st.integers(1, WINDOW))]
    tail = draw(st.lists(st.integers(1, 2), max_size=WINDOW - len(stem)))
    return [*stem, *tail]


@st.composite
def cache_marks(draw: st.DrawFn, num_ids: int) -> tuple[CacheMark, ...]:
    lengths = draw(st.lists(st.integers(1, num_ids), unique=True, max_size=3))
    ttls = sorted(draw(st.sampled_from((300, 3600))) for _ in lengths)[::-1]
    return tuple(
        CacheMark(length, ttl, tuple(range(length - 1, max(0, length - 6), -1)))
        for length, ttl in zip(sorted(lengths), ttls, strict=True)
    )


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, go, fail and finish; `slots` is what the cache would hold.

    A slot holds the tenant and every id up to its own: what a sequence reads is then
    right for all that went before, whoever has computed it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.scheduler = make_scheduler(
            num_pages=8, max_step_tokens=7, max_sequences=3, clock=self.clock
        )
        self.number = 0
        self.sequences: dict[str, Sequence] = {}
        self.said: dict[str, list[Output]] = {}
        self.slots: dict[int, tuple[str, tuple[int, ...]]] = {}
        self.written: dict[tuple[str, tuple[int, ...]], float] = {}  # marked prefixes: until when

    @rule(
        ids=prompts(),
        data=st.data(),
        max_tokens=st.integers(0, 9),
        tenant=st.sampled_from("ab"),
        priority=st.sampled_from(Priority),
    )
    def add(
        self, ids: list[int], data: st.DataObject, max_tokens: int, tenant: str, priority: Priority
    ) -> None:
        self.number += 1
        id, marks = f"r{self.number}", data.draw(cache_marks(len(ids)))
        request = GenerationRequest(
            id, ids, max_tokens, frozenset({END}), tenant=tenant, marks=marks, priority=priority
        )
        self.sequences[id] = Sequence(request, list(ids))
        self.said[id] = []
        self.look_at(request, self.scheduler.add(self.sequences[id]))

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.scheduler.cancel(f"r{data.draw(st.integers(0, self.number))}")

    @rule(seconds=st.sampled_from((1, 200, 4000)))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(data=st.data(), cancel_meanwhile=st.booleans())
    def step(self, data: st.DataObject, cancel_meanwhile: bool) -> None:
        batch = self.scheduler.schedule()
        self.run(batch)
        if cancel_meanwhile and batch.request_ids:
            self.scheduler.cancel(data.draw(st.sampled_from(batch.request_ids)))
        ids = data.draw(st.lists(st.integers(-1, 2), min_size=3, max_size=3))
        sampled: list[list[Sampled]] = [
            [Token(request_id, id, 0.0)]
            if id >= 0
            else [Finish(request_id, FinishReason.ERROR, "a row that failed")]
            for request_id, id in zip(batch.sample_ids, ids, strict=False)
        ]
        self.hear(self.scheduler.commit(batch, sampled))

    @rule()
    def failing_step(self) -> None:
        batch = self.scheduler.schedule()
        self.hear(self.scheduler.fail(batch, "the device is gone"))

    @invariant()
    def everything_holds(self) -> None:
        self.scheduler.check()

    def teardown(self) -> None:
        for _ in range(100 * (self.number + 1)):
            if not self.scheduler.has_work:
                break
            batch = self.scheduler.schedule()
            self.run(batch)
            self.hear(self.scheduler.commit(batch, tokens(batch)))
        assert all(isinstance(said[-1], Finish) for said in self.said.values())
        assert self.scheduler.cache.pool.num_used == 0

    def run(self, batch: Batch) -> None:
        """Write the batch's ids to their slots; each context must then be whole."""
        starts = zip(batch.query_starts, batch.query_starts[1:], strict=False)
        for index, (start, end) in enumerate(starts):
            sequence, table = self.sequences[batch.request_ids[index]], batch.page_tables[index]
            tenant, ids = sequence.request.tenant, tuple(sequence.ids)
            assert list(ids[batch.positions[start] :][: end - start]) == batch.input_ids[start:end]
            for row in range(start, end):
                self.slots[batch.slots[row]] = tenant, ids[: batch.positions[row] + 1]
            for position in range(batch.context_lens[index]):
                slot = table[position // PAGE_SIZE] * PAGE_SIZE + position % PAGE_SIZE
                assert self.slots[slot] == (tenant, ids[: position + 1])
        assert len(batch.input_ids) <= 7
        assert batch.input_ids or not (self.scheduler.running or self.scheduler.waiting)

    def look_at(self, request: GenerationRequest, counts: CacheCounts) -> None:
        """A marked prefix is read only if the tenant has written it, and not too long ago."""
        marks = request.marks
        last = max([mark.num_tokens for mark in marks], default=0)
        written = counts.written_5m + counts.written_1h
        assert counts.read + written == max(last, counts.read) <= len(request.prompt_ids)
        assert counts.reused < len(request.prompt_ids)
        if counts.read:
            prefix = request.tenant, tuple(request.prompt_ids[: counts.read])
            assert self.written[prefix] > self.clock.now
            assert any(counts.read in (mark.num_tokens, *mark.earlier) for mark in marks)
            self.written[prefix] = max(self.written[prefix], self.clock.now + 3600)

    def hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            said, request = self.said[output.request_id], self.sequences[output.request_id].request
            assert not any(isinstance(each, Finish) for each in said), "spoken after the finish"
            if isinstance(output, Admitted):
                self.look_at(request, output.counts)
                assert not said, "counts are corrected before the first token, or never"
            said.append(output)
            num_tokens = sum(isinstance(each, Token) for each in said)
            assert num_tokens <= request.max_tokens
            if num_tokens == 1 or isinstance(output, Finish):
                self.note_entries(request)

    def note_entries(self, request: GenerationRequest) -> None:
        for mark in request.marks:
            prefix = request.tenant, tuple(request.prompt_ids[: mark.num_tokens])
            until = self.clock.now + 3600  # at most: it may have been written for less
            self.written[prefix] = max(self.written.get(prefix, 0), until)


TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, derandomize=True
)


def test_scheduling_does_not_import_torch() -> None:
    code = "import sys, minimsg.engine.scheduler; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_decode_rows_come_first_and_prefill_fills_the_budget() -> None:
    scheduler = make_scheduler(num_pages=15, max_step_tokens=8)
    scheduler.add(sequence("a", 3))
    batch = scheduler.schedule()
    scheduler.commit(batch, tokens(batch))
    scheduler.add(sequence("b", 12))
    batch = scheduler.schedule()
    assert batch.request_ids == ["a", "b"]
    assert batch.query_starts == [0, 1, 8]
    assert batch.input_ids == [7, 1, 2, 3, 4, 5, 6, 7]
    assert batch.positions == [3, 0, 1, 2, 3, 4, 5, 6]
    assert batch.context_lens == [4, 7]
    assert batch.sample_rows == [0]
    assert batch.sample_ids == ["a"]


def test_the_youngest_gives_its_pages_and_comes_back_first() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("old", 7, max_tokens=12))
    scheduler.add(sequence("young", 7, max_tokens=12, first=11))
    scheduler.add(sequence("next", 4, first=21))
    for _ in range(2):
        batch = scheduler.schedule()
        scheduler.commit(batch, tokens(batch))
    scheduler.schedule()  # both need their third page, and one is free
    assert [each.request.id for each in scheduler.running] == ["old"]
    assert [each.request.id for each in scheduler.waiting] == ["young", "next"]
    assert scheduler.waiting[0].ids == [11, 12, 13, 14, 15, 16, 17, 7, 7]
    assert scheduler.waiting[0].num_computed == 8  # its full pages are there still


def test_nobody_overtakes_a_request_that_waits_for_pages() -> None:
    scheduler = make_scheduler()
    for id, num_ids in (("first", 9), ("big", 15), ("small", 1)):
        scheduler.add(sequence(id, num_ids))
    assert scheduler.schedule().request_ids == ["first"]
    assert [each.request.id for each in scheduler.waiting] == ["big", "small"]


def test_every_running_sequence_decodes_in_every_step_whatever_the_budget() -> None:
    scheduler = make_scheduler(num_pages=20, max_step_tokens=2, max_sequences=9)
    for id in "abcd":
        scheduler.add(sequence(id, 1, max_tokens=3))
    finished = []
    for _ in range(6):
        batch = scheduler.schedule()
        outputs = scheduler.commit(batch, tokens(batch))
        finished += [each.request_id for each in outputs if isinstance(each, Finish)]
    assert finished == ["a", "b", "c", "d"]


def test_a_prompt_waits_until_its_first_token_has_a_slot_too() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("first", 12))  # 3 pages, and one for its first token
    scheduler.add(sequence("second", 4))  # 1 page is left; it needs a second
    assert scheduler.schedule().request_ids == ["first"]
    assert scheduler.cache.pool.num_free == 1


def test_asking_twice_for_a_batch_gives_the_same_batch() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("a", 6))
    assert scheduler.schedule() == scheduler.schedule()


def test_an_id_that_comes_back_while_its_batch_runs_is_another_request() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("a", 3))
    batch = scheduler.schedule()
    scheduler.cancel("a")
    scheduler.add(sequence("a", 5))
    outputs = scheduler.commit(batch, tokens(batch))
    assert outputs == [Finish("a", FinishReason.CANCELLED)]
    assert scheduler.waiting[0].num_computed == 0
    assert scheduler.waiting[0].num_generated == 0


def test_tokens_after_the_one_that_ends_a_request_are_dropped() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("a", 3))
    batch = scheduler.schedule()
    several: list[Sampled] = [Token("a", id, 0.0) for id in (7, END, 8)]
    assert scheduler.commit(batch, [several]) == [*several[:2], Finish("a", FinishReason.END)]


def test_a_prompt_longer_than_the_window_is_refused_with_both_numbers() -> None:
    scheduler = make_scheduler()
    with pytest.raises(InvalidRequest, match="prompt is too long: 21 tokens > 20 maximum"):
        scheduler.add(sequence("a", 21))
    assert not scheduler.has_work


def test_an_id_that_is_running_is_refused() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("a", 3))
    with pytest.raises(InvalidRequest, match="'a' is already running"):
        scheduler.add(sequence("a", 3))


def test_a_pool_smaller_than_one_window_is_a_fault_of_ours() -> None:
    with pytest.raises(AssertionError, match="one full window"):
        make_scheduler(num_pages=4)
