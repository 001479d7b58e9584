"""The scheduler without a model, case by case; in any order: `test_scheduler_machine.py`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from minimsg.engine.types import Finish, FinishReason, Sampled, Token
from minimsg.errors import InvalidRequest

from .scheduling import END, make_scheduler, sequence, tokens


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
