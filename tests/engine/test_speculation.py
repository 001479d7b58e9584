"""When drafts are made, and that nobody but their own sequence ever pays for them."""

from __future__ import annotations

from random import Random

import pytest

from minimsg.engine.scheduler import Scheduler
from minimsg.engine.speculation import ALLOWANCE, ROW_COST, START, Budget, before_end
from minimsg.engine.types import Batch, CacheMark, Finish, FinishReason, Output, Sequence, Token

from .scheduling import END, make_scheduler, sequence

WINDOW = 64


def speculating(
    *, num_pages: int = 40, max_step_tokens: int = 64, max_sequences: int = 4, max_drafts: int = 2
) -> Scheduler:
    return make_scheduler(
        num_pages=num_pages,
        max_step_tokens=max_step_tokens,
        max_sequences=max_sequences,
        window=WINDOW,
        max_drafts=max_drafts,
    )


def looping(id: str, num_ids: int = 6, max_tokens: int = 40, first: int = 1) -> Sequence:
    """A prompt that repeats two ids: 1, 2, 1, 2 ..."""
    looped = sequence(id, num_ids, max_tokens, first)
    ids = [first + place % 2 for place in range(num_ids)]
    looped.request.prompt_ids[:] = ids  # type: ignore[index]
    looped.ids[:] = ids
    return looped


def step(scheduler: Scheduler, *, num_accepted: int = 9) -> tuple[Batch, list[Output]]:
    """One step in which at most so many drafts of each are what was drawn."""
    batch = scheduler.schedule()
    scheduler.check()
    sampled = []
    for each in scheduler.sampling(batch):
        loop = each.ids[-2]
        ids = [*each.drafts[:num_accepted], 99]
        if num_accepted >= len(each.drafts):  # the loop goes on
            ids[-1] = each.drafts[-2] if len(each.drafts) > 1 else loop
        sampled.append([Token(each.request.id, id, 0.0) for id in ids])
    outputs = scheduler.commit(batch, sampled)  # type: ignore[arg-type]
    scheduler.check()
    return batch, outputs


def num_rows(batch: Batch) -> dict[str, int]:
    return {part.request_ids[0]: len(part.input_ids) for part in batch.split()}


def test_a_step_computes_the_last_id_and_its_drafts_and_samples_behind_each() -> None:
    scheduler = speculating()
    scheduler.add(looping("a"))
    step(scheduler)
    batch = scheduler.schedule()
    assert batch.input_ids == [1, 2, 1]
    assert batch.positions == [6, 7, 8]
    assert batch.context_lens == [9]
    assert batch.sample_rows == [0, 1, 2]
    assert batch.sample_ids == ["a"] * 3


def test_without_the_setting_nothing_is_drafted() -> None:
    scheduler = speculating(max_drafts=0)
    scheduler.add(looping("a"))
    for _ in range(5):
        batch, _ = step(scheduler)
    assert num_rows(batch) == {"a": 1}


def test_asking_twice_for_a_batch_gives_the_same_drafts() -> None:
    scheduler = speculating()
    scheduler.add(looping("a"))
    step(scheduler)
    assert scheduler.schedule() == scheduler.schedule()


def test_the_first_of_the_rejected_is_computed_again_in_its_own_place() -> None:
    scheduler = speculating()
    looped = looping("a")
    scheduler.add(looped)
    step(scheduler)
    step(scheduler, num_accepted=1)
    assert looped.ids[6:] == [1, 2, 99]
    assert looped.num_computed == 8
    batch = scheduler.schedule()
    assert (batch.input_ids, batch.positions, batch.slots) == (
        [99],
        [8],
        [looped.page_table[2] * 4],
    )


def test_two_may_speculate_and_three_may_not() -> None:
    scheduler = speculating(max_drafts=1)
    for index, id in enumerate("abc"):
        scheduler.add(looping(id, first=10 * index + 1, max_tokens=5 * (3 - index)))
    step(scheduler)
    assert num_rows(step(scheduler)[0]) == {"a": 1, "b": 1, "c": 1}
    scheduler.cancel("c")
    assert num_rows(step(scheduler)[0]) == {"a": 2, "b": 2}


def test_nobody_speculates_while_a_prompt_is_read() -> None:
    scheduler = speculating(max_step_tokens=8)
    scheduler.add(looping("a"))
    step(scheduler)
    assert num_rows(step(scheduler)[0]) == {"a": 3}
    scheduler.add(sequence("b", 12, first=50))
    assert num_rows(step(scheduler)[0]) == {"a": 1, "b": 7}
    assert num_rows(step(scheduler)[0]) == {"a": 1, "b": 5}
    assert num_rows(step(scheduler)[0]) == {"a": 3, "b": 1}


def test_drafts_stay_within_the_tokens_of_a_step() -> None:
    scheduler = speculating(max_step_tokens=3)
    for id, first in (("a", 1), ("b", 11)):
        scheduler.add(looping(id, first=first))
    for _ in range(8):
        batch, _ = step(scheduler)
        assert len(batch.input_ids) <= 3
    assert num_rows(batch) == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("num_ids", "max_tokens", "reason"),
    [(6, 7, FinishReason.LENGTH), (WINDOW - 7, 50, FinishReason.CONTEXT)],
)
def test_no_id_too_many_is_drafted_at_the_end(
    num_ids: int, max_tokens: int, reason: FinishReason
) -> None:
    scheduler = speculating(max_drafts=5)
    scheduler.add(looping("a", num_ids, max_tokens))
    said: list[Output] = []
    while scheduler.has_work:
        batch, outputs = step(scheduler)
        assert batch.context_lens[0] < num_ids + 7
        said += outputs
    assert said[-1] == Finish("a", reason)
    assert len(said) == 7 + 1
    counts = scheduler.speculation.counts
    assert 0 < counts.proposed == counts.accepted


def test_an_id_that_ends_the_turn_is_not_drafted() -> None:
    assert before_end([5, 6, END, 7], {END, 9}) == [5, 6]
    assert before_end([5, 6], {END}) == [5, 6]
    scheduler = speculating()
    scheduler.add(looping("a", 5, first=END))
    step(scheduler)
    assert scheduler.schedule().input_ids == [1]  # END, 1, END, 1 ... followed it


def test_drafts_take_no_page_from_those_who_run_or_wait() -> None:
    scheduler = speculating(max_sequences=1)
    pool = scheduler.cache.pool
    scheduler.add(sequence("before", 12, 0, first=30))
    step(scheduler)
    scheduler.add(looping("a", 6))
    step(scheduler)
    waits = sequence("waits", 12, first=30)
    assert scheduler.add(waits).reused == 8
    while pages := pool.allocate(1):
        assert pages  # somebody else's
    while scheduler.cache.index.evict():
        pool.allocate(1)
    assert scheduler.schedule().input_ids == [1, 2]  # there are slots 6 and 7, and no page for 8
    assert len(waits.page_table) == 2


def test_pages_that_were_only_for_drafts_go_back() -> None:
    scheduler = speculating(max_drafts=4)
    looped = looping("a", 6)
    scheduler.add(looped)
    step(scheduler)
    scheduler.schedule()
    assert len(looped.page_table) == 3  # slots 6 to 8: the page of 8 is for a draft
    scheduler.speculation.withdraw()
    assert len(looped.page_table) == 2
    scheduler.check()


def test_drafts_take_the_pages_that_nobody_uses_and_leave_those_that_are_pinned() -> None:
    scheduler = speculating(num_pages=16, max_drafts=4)
    pool = scheduler.cache.pool
    marked = sequence("pins", 32, 0, first=30, marks=(CacheMark(32, 300),))
    scheduler.add(marked)
    scheduler.add(sequence("idle", 4, 0, first=80))
    while scheduler.has_work:
        step(scheduler)
    assert scheduler.cache.index.num_pinned == 8
    looped = looping("a", 26)
    scheduler.add(looped)
    scheduler.schedule()
    taken = pool.allocate(pool.num_free)
    assert taken is not None
    spare = scheduler.cache.spare(looped, 40)
    assert spare == 32  # one page from the idle ones, and no more
    assert scheduler.cache.index.num_pinned == 8


def test_what_was_rejected_is_never_found_by_others() -> None:
    scheduler = speculating(max_drafts=4)
    scheduler.add(looping("a", 6, max_tokens=3))
    step(scheduler)
    step(scheduler, num_accepted=0)
    step(scheduler, num_accepted=0)
    assert not scheduler.has_work
    assert scheduler.add(looping("b", 12)).reused == 4  # of 1, 2, 1, 2, 1, 2, 1, 99


def test_what_was_accepted_is_found_by_others_even_of_the_step_that_ended_the_reply() -> None:
    scheduler = speculating(max_drafts=4)
    scheduler.add(looping("a", 6, max_tokens=4))
    step(scheduler)
    step(scheduler)
    assert not scheduler.has_work
    assert scheduler.add(looping("b", 12)).reused == 8


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_drafts_never_cost_more_than_the_allowance(rate: float) -> None:
    """Time in steps of one row, against one step for each id: at every id of the reply."""
    numbers = Random(3)
    budget, num_said, time = Budget(8), 0, 0.0
    while num_said < 2_000:
        count = min(8, budget.num_drafts)
        accepted = next((i for i in range(count) if numbers.random() >= rate), count)
        num_said += 1 + accepted
        time += 1 + count * ROW_COST
        budget.settle(count, accepted)
        assert time <= num_said * (1 + ALLOWANCE) + START + 1e-9
    if rate == 1.0:
        assert time < num_said / 2


def test_what_was_saved_long_ago_does_not_pay_for_ever() -> None:
    budget = Budget(8)
    for _ in range(1_000):
        budget.settle(8, 8)
    num_misses = 0
    while (count := min(8, budget.num_drafts)) > 1:
        budget.settle(count, 0)
        num_misses += 1
    assert num_misses < 6
