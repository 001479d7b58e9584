"""What prompts share, case by case: who finds what, what pressure corrects, what must not meet."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from minimsg.engine import prefix
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.types import (
    Admitted,
    Batch,
    CacheCounts,
    CacheMark,
    Finish,
    FinishReason,
    ImageSpan,
    Sampled,
    Sequence,
    Token,
)

from .scheduling import Clock, make_scheduler, run_to_end, sequence, step, tokens


def run(scheduler: Scheduler, *sequences: Sequence) -> list[CacheCounts]:
    """Each of them to its end, one by one; what the cache had of it."""
    counts = []
    for each in sequences:
        counts.append(scheduler.add(each))
        run_to_end(scheduler)
    return counts


def test_a_prompt_that_fills_its_pages_is_computed_from_its_last_page_on() -> None:
    scheduler = make_scheduler()
    counts = run(scheduler, sequence("a", 8), sequence("b", 8), sequence("c", 9))
    assert [each.reused for each in counts] == [0, 4, 8]


def test_a_prompt_finds_what_a_longer_one_left_and_leaves_that_to_it() -> None:
    scheduler = make_scheduler(num_pages=9)
    counts = run(
        scheduler, sequence("a+b", 14, 1), sequence("a", 7, 1), sequence("a+b again", 14, 1)
    )
    assert [each.reused for each in counts] == [0, 4, 12]


def test_what_is_generated_is_found_by_the_next_turn() -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("a", 3, max_tokens=6))
    while scheduler.has_work:
        step(scheduler, id=9)
    turn = sequence("b", 3)
    turn.request.prompt_ids[3:] = turn.ids[3:] = [9] * 6  # type: ignore[index]
    assert scheduler.add(turn).reused == 8


def test_prompts_that_compute_the_same_in_one_step_share_it_then() -> None:
    scheduler = make_scheduler(num_pages=10, max_step_tokens=64)
    twins = [sequence("a", 10), sequence("b", 10)]
    scheduler.add(twins[0])
    scheduler.schedule()
    scheduler.add(twins[1])
    scheduler.running.append(twins[1])
    scheduler.waiting.clear()
    assert scheduler.cache.provide(twins[1], 10)
    for twin in twins:
        twin.num_computed = 9
        scheduler.cache.publish(twin)
    scheduler.check()
    assert twins[0].page_table[:2] == twins[1].page_table[:2]
    assert twins[0].page_table[2] != twins[1].page_table[2]
    assert scheduler.cache.pool.num_used == 4


def test_equal_prompts_wait_for_the_first_of_them_instead_of_computing_the_same() -> None:
    scheduler = make_scheduler(num_pages=15, max_step_tokens=20)
    for id in "abc":
        scheduler.add(sequence(id, 9, first=1))
    assert step(scheduler)[0].request_ids == ["a"]
    batch, _ = step(scheduler)
    assert sorted(batch.request_ids) == ["a", "b", "c"]
    assert len(batch.input_ids) == 3  # one id each


@pytest.mark.parametrize(
    ("other", "num_shared"),
    [
        (ImageSpan(5, 11, b"dog"), 4),
        (ImageSpan(5, 11, b"cat"), 12),
        (ImageSpan(6, 12, b"cat"), 4),
        (None, 4),
    ],
    ids=["another image", "the same", "the same elsewhere", "none"],
)
def test_pages_with_an_image_are_shared_only_by_the_same_image(
    other: ImageSpan | None, num_shared: int
) -> None:
    scheduler = make_scheduler(num_pages=10)
    images = (other,) if other else ()
    first = sequence("a", 14, 1, images=(ImageSpan(5, 11, b"cat"),))
    counts = run(scheduler, first, sequence("b", 14, 1, images=images))
    assert counts[1].reused == num_shared


@pytest.mark.parametrize("digest", [b"cat", b"dog"])
def test_an_entry_that_ends_in_an_image_is_read_only_with_the_same_image(digest: bytes) -> None:
    scheduler = make_scheduler(num_pages=10)
    marks = (CacheMark(7, 300),)
    prompts = [
        sequence(id, 14, 1, marks=marks, images=(ImageSpan(5, 11, each),))
        for id, each in (("a", b"cat"), ("b", digest))
    ]
    assert run(scheduler, *prompts)[1].read == (7 if digest == b"cat" else 0)


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_a_hash_that_collides_gives_no_wrong_page(
    monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    def colliding(data: bytes) -> bytes:
        return bytes([blake2b(data, digest_size=1).digest()[0] & ((1 << bits) - 1)]) * 32

    monkeypatch.setattr(prefix, "_hash", colliding)
    scheduler = make_scheduler(num_pages=12)
    slots: dict[int, tuple[int, ...]] = {}
    for number in range(40):
        scheduler.add(sequence(f"r{number}", 13, 2, first=1))
        scheduler.add(sequence(f"s{number}", 13, 2, first=1 + number % 3))
        tail = sequence(f"t{number}", 13, 2, first=50)
        tail.ids[4:] = tail.request.prompt_ids[4:] = range(5, 14)  # type: ignore[index]
        scheduler.add(tail)
        while scheduler.has_work:
            read_back(scheduler, slots)


def read_back(scheduler: Scheduler, slots: dict[int, tuple[int, ...]]) -> None:
    """One step; each context must be what its sequence says."""
    batch = scheduler.schedule()
    for part in batch.split():
        (sequence,) = (each for each in scheduler.running if each.request.id == part.request_ids[0])
        for position, slot in zip(part.positions, part.slots, strict=True):
            slots[slot] = tuple(sequence.ids[: position + 1])
        for position in range(part.context_lens[0]):
            slot = part.page_tables[0][position // 4] * 4 + position % 4
            assert slots[slot] == tuple(sequence.ids[: position + 1])
    scheduler.commit(batch, tokens(batch))


def test_counts_are_said_again_when_pressure_took_the_pages() -> None:
    scheduler = make_scheduler(pin_budget=0)
    marks = (CacheMark(8, 300),)
    run(scheduler, sequence("writer", 9, 1, marks=marks))
    scheduler.add(sequence("busy", 8, 8, first=50))
    step(scheduler)
    reader = sequence("reader", 9, 1, marks=marks)
    assert scheduler.add(reader) == CacheCounts(read=8, reused=8)
    said = run_to_end(scheduler)
    corrected = [each for each in said if isinstance(each, Admitted)]
    assert corrected == [Admitted("reader", CacheCounts(written_5m=8, reused=4))]
    assert said.index(corrected[0]) < said.index(Finish("reader", FinishReason.LENGTH))


def test_a_pin_holds_what_pressure_would_take_until_its_time_is_over() -> None:
    clock = Clock()
    scheduler = make_scheduler(num_pages=8, pin_budget=2, clock=clock)
    run(scheduler, sequence("marked", 9, 1, marks=(CacheMark(8, 300),)))
    for number in range(3):
        run(scheduler, sequence(f"other {number}", 16, 1, first=100 * (number + 1)))
    assert scheduler.add(sequence("again", 9, 1)).reused == 8
    run_to_end(scheduler)
    clock.now += 301
    run(scheduler, sequence("recent", 12, 1, first=500))
    run(scheduler, sequence("needs pages", 19, 1, first=600))
    assert scheduler.add(sequence("recent again", 12, 1, first=500)).reused == 8


def test_nothing_is_kept_where_the_cache_is_off() -> None:
    scheduler = make_scheduler(is_on=False)
    marks = (CacheMark(8, 300),)
    counts = run(scheduler, *(sequence(id, 9, marks=marks) for id in "ab"))
    assert counts == [CacheCounts(), CacheCounts()]
    assert scheduler.cache.pool.num_cached == 0


def test_a_prompt_that_only_fills_the_cache_writes_its_entries() -> None:
    scheduler = make_scheduler()
    marks = (CacheMark(6, 3600), CacheMark(9, 300))
    counts = run(scheduler, sequence("a", 9, 0, marks=marks), sequence("b", 9, 1, marks=marks))
    assert counts == [CacheCounts(written_5m=3, written_1h=6), CacheCounts(read=9, reused=8)]


def test_an_entry_is_found_by_a_later_mark_that_looks_back() -> None:
    scheduler = make_scheduler()
    run(scheduler, sequence("a", 9, 1, marks=(CacheMark(6, 300),)))
    assert scheduler.add(sequence("b", 12, marks=(CacheMark(10, 300, (8, 6)),))).read == 6
    assert scheduler.add(sequence("c", 12, marks=(CacheMark(10, 300, (8, 5)),))).read == 0


def test_neither_entry_nor_page_is_seen_by_another_tenant() -> None:
    scheduler = make_scheduler()
    marks = (CacheMark(3, 300), CacheMark(8, 300))
    run(scheduler, sequence("a", 9, 1, tenant="a", marks=marks))
    assert scheduler.add(sequence("b", 9, 1, tenant="b", marks=marks)) == CacheCounts(written_5m=8)


def broken(batch: Batch, id: str) -> list[list[Sampled]]:
    """Tokens, but not of `id`."""
    finish = Finish(id, FinishReason.ERROR, "not a number", is_broken=True)
    return [[finish if each == id else Token(each, 9, 0.0)] for each in batch.sample_ids]


def test_whoever_used_what_a_broken_row_had_begins_anew_and_it_does_so_once() -> None:
    scheduler = make_scheduler(num_pages=15, max_step_tokens=6)
    run(scheduler, sequence("before", 5, marks=(CacheMark(4, 300),)))
    other, victim = sequence("other", 7, max_tokens=9), sequence("victim", 14)
    assert [scheduler.add(each).reused for each in (other, victim)] == [4, 4]
    while victim.num_pending > 5:
        step(scheduler)
    num_said = other.num_generated
    batch = scheduler.schedule()
    assert scheduler.commit(batch, broken(batch, "victim")) == []
    scheduler.check()
    assert [each.num_computed for each in (other, victim)] == [0, 0]
    assert scheduler.add(sequence("after", 14, marks=(CacheMark(9, 300, (4,)),))).read == 0
    assert other.num_generated == num_said
    while not victim.num_generated:
        step(scheduler)
    batch = scheduler.schedule()
    outputs = scheduler.commit(batch, broken(batch, "victim"))
    assert Finish("victim", FinishReason.ERROR, "not a number") in outputs
    run_to_end(scheduler)
    assert len(other.ids) == 7 + 9
    assert scheduler.cache.pool.num_used == 0


@pytest.mark.parametrize("max_tokens", [0, 5])
def test_a_broken_row_leaves_nothing_to_others(max_tokens: int) -> None:
    scheduler = make_scheduler()
    scheduler.add(sequence("a", 9, max_tokens, marks=(CacheMark(8, 300),)))
    batch = scheduler.schedule()
    said = scheduler.commit(batch, broken(batch, "a"))
    assert said == [Finish("a", FinishReason.ERROR, "not a number")]
    assert scheduler.add(sequence("b", 9, marks=(CacheMark(8, 300),))) == CacheCounts(written_5m=8)


def test_a_prompt_that_fills_the_window_writes_nothing() -> None:
    scheduler = make_scheduler()
    assert scheduler.add(sequence("full", 20, marks=(CacheMark(16, 300),))) == CacheCounts()
    assert step(scheduler)[1] == [Finish("full", FinishReason.CONTEXT)]
    assert not scheduler.has_work


def test_a_fault_while_a_prompt_is_looked_up_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler = make_scheduler()
    run(scheduler, sequence("before", 9))
    with monkeypatch.context() as patch:
        patch.setattr(scheduler.cache.index, "use", lambda node: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            scheduler.add(sequence("a", 9))
    scheduler.check()
    assert not scheduler.has_work
    assert scheduler.add(sequence("a", 9)).reused == 8
