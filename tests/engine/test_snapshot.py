"""Looking on: what is seen of an engine, and holding it for a while."""

from __future__ import annotations

from minimsg.engine.pause import MAX_HOLD_S, Pause
from minimsg.engine.snapshot import MAX_STEPS, WATCHED_S, Onlookers, PageState
from minimsg.engine.types import CacheMark, GenerationRequest
from minimsg.loading import load


class Clock:
    """A time that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_hold_lets_only_the_steps_through_that_were_asked_for() -> None:
    pause, taken = Pause(Clock()), 0
    pause.hold(num_steps=2)
    while pause.may_step:
        pause.note_step()
        taken += 1
    assert taken == 2
    pause.release()
    assert (pause.may_step, pause.left_s) == (True, 0)


def test_a_hold_ends_unless_it_is_asked_for_again() -> None:
    clock = Clock()
    pause = Pause(clock)
    pause.hold()
    clock.now += MAX_HOLD_S - 1
    pause.hold()
    allowed = []
    for seconds in (MAX_HOLD_S - 1, 1):
        clock.now += seconds
        allowed.append(pause.may_step)
    assert allowed == [False, True]


def test_steps_are_noted_only_while_somebody_looks() -> None:
    model, clock = load("tiny"), Clock()
    onlookers, engine = Onlookers(clock), model.engine

    def noted() -> list[int]:
        return [step.number for step in onlookers.look(after=0)]

    def run(num_steps: int) -> None:
        for _ in model.steps("Hello.", max_tokens=num_steps, temperature=0):
            assert engine.batch is not None
            onlookers.note(engine.scheduler, engine.batch, engine.num_steps, clock.now)

    run(3)
    assert noted() == []
    run(3)
    assert noted() == [4, 5, 6]
    assert [step.number for step in onlookers.look(after=5)] == [6]
    clock.now += WATCHED_S + 1
    run(2)
    assert noted() == []  # there was a gap
    run(MAX_STEPS + 5)
    assert len(noted()) == MAX_STEPS


def test_a_snapshot_says_of_each_page_what_the_pool_says() -> None:
    engine = load("tiny").engine
    for step in engine.steps(_request(40)):
        seen = engine.look()
        states, pool = seen.states(), engine.pool
        counts = [states.count(state) for state in PageState]
        assert counts[PageState.FREE] == min(pool.num_free, len(states) - sum(counts[1:]))
        assert counts[PageState.CACHED] + counts[PageState.KEPT] == pool.num_cached
        assert counts[PageState.USED] == pool.num_used
        assert len(seen.pages.used) == pool.num_used, step


def _request(num_ids: int) -> GenerationRequest:
    mark = CacheMark(num_tokens=32, ttl_s=300)
    return GenerationRequest("a", list(range(num_ids)), max_tokens=20, marks=(mark,))
