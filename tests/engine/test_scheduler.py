"""The scheduler without a model: what may happen in any order, and what must always hold."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine.pages import PagePool
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.types import (
    Batch,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    Sequence,
    Token,
)
from minimsg.errors import InvalidRequest

PAGE_SIZE = 4
WINDOW = 20
END = 0


def make_scheduler(
    *, num_pages: int = 5, max_batch_tokens: int = 64, max_sequences: int = 4
) -> Scheduler:
    return Scheduler(
        PagePool(num_pages),
        page_size=PAGE_SIZE,
        max_context=WINDOW,
        max_batch_tokens=max_batch_tokens,
        max_sequences=max_sequences,
    )


def sequence(id: str, num_ids: int, max_tokens: int = 5) -> Sequence:
    request = GenerationRequest(id, list(range(1, num_ids + 1)), max_tokens, frozenset({END}))
    return Sequence(request, list(request.prompt_ids))


def tokens(batch: Batch, id: int = 7) -> list[list[Output]]:
    return [[Token(request_id, id, 0.0)] for request_id in batch.sample_ids]


class SchedulerMachine(RuleBasedStateMachine):
    """Requests come, go, fail and finish; `slots` is what the cache would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = make_scheduler(num_pages=6, max_batch_tokens=7, max_sequences=3)
        self.number = 0
        self.max_tokens: dict[str, int] = {}
        self.sequences: dict[str, Sequence] = {}
        self.said: dict[str, list[Output]] = {}
        self.slots: dict[int, tuple[str, int, int]] = {}

    @rule(num_ids=st.integers(1, WINDOW), max_tokens=st.integers(0, 9))
    def add(self, num_ids: int, max_tokens: int) -> None:
        self.number += 1
        id = f"r{self.number}"
        self.sequences[id] = sequence(id, num_ids, max_tokens)
        self.max_tokens[id] = max_tokens
        self.said[id] = []
        self.scheduler.add(self.sequences[id])

    @precondition(lambda self: self.number)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.scheduler.cancel(f"r{data.draw(st.integers(0, self.number))}")

    @rule(data=st.data(), cancel_meanwhile=st.booleans())
    def step(self, data: st.DataObject, cancel_meanwhile: bool) -> None:
        batch = self.scheduler.schedule()
        self.run(batch)
        if cancel_meanwhile and batch.request_ids:
            self.scheduler.cancel(data.draw(st.sampled_from(batch.request_ids)))
        ids = data.draw(st.lists(st.integers(-1, 9), min_size=3, max_size=3))
        sampled: list[list[Output]] = [
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
        assert self.scheduler.pool.num_free == 6

    def run(self, batch: Batch) -> None:
        """Write the batch's ids to their slots; each context must then be whole."""
        starts = zip(batch.query_starts, batch.query_starts[1:], strict=False)
        for index, (start, end) in enumerate(starts):
            id, table = batch.request_ids[index], batch.page_tables[index]
            for row in range(start, end):
                entry = (id, batch.positions[row], batch.input_ids[row])
                self.slots[batch.slots[row]] = entry
            context = enumerate(self.sequences[id].ids[: batch.context_lens[index]])
            for position, token in context:
                slot = table[position // PAGE_SIZE] * PAGE_SIZE + position % PAGE_SIZE
                assert self.slots[slot] == (id, position, token)
        assert len(batch.input_ids) <= 7
        assert batch.request_ids == [each.request.id for each in self.scheduler.running]
        assert batch.input_ids or not (self.scheduler.running or self.scheduler.waiting)

    def hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            said = self.said[output.request_id]
            assert not any(isinstance(each, Finish) for each in said), "spoken after the finish"
            said.append(output)
            assert (
                sum(isinstance(each, Token) for each in said) <= self.max_tokens[output.request_id]
            )


TestScheduler = SchedulerMachine.TestCase
TestScheduler.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, derandomize=True
)


def test_scheduling_does_not_import_torch() -> None:
    code = "import sys, minimsg.engine.scheduler; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_decode_rows_come_first_and_prefill_fills_the_budget() -> None:
    scheduler = make_scheduler(num_pages=15, max_batch_tokens=8)
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
    for id in ("old", "young"):
        scheduler.add(sequence(id, 7, max_tokens=12))
    scheduler.add(sequence("next", 4))
    for _ in range(2):
        batch = scheduler.schedule()
        scheduler.commit(batch, tokens(batch))
    scheduler.schedule()  # both need their third page, and one is free
    assert [each.request.id for each in scheduler.running] == ["old"]
    assert [each.request.id for each in scheduler.waiting] == ["young", "next"]
    assert scheduler.waiting[0].ids == [1, 2, 3, 4, 5, 6, 7, 7, 7]
    assert scheduler.waiting[0].num_computed == 0


def test_nobody_overtakes_a_request_that_waits_for_pages() -> None:
    scheduler = make_scheduler()
    for id, num_ids in (("first", 9), ("big", 15), ("small", 1)):
        scheduler.add(sequence(id, num_ids))
    assert scheduler.schedule().request_ids == ["first"]
    assert [each.request.id for each in scheduler.waiting] == ["big", "small"]


def test_every_running_sequence_decodes_in_every_step_whatever_the_budget() -> None:
    scheduler = make_scheduler(num_pages=20, max_batch_tokens=2, max_sequences=9)
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
    assert scheduler.pool.num_free == 1


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
    several: list[Output] = [Token("a", id, 0.0) for id in (7, END, 8)]
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
