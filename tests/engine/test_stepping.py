"""Steps that are looked at, held up and taken back: the same come again, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from minimsg.config import EngineConfig
from minimsg.engine.stepping import Step, Steps
from minimsg.engine.types import CacheMark, Finish, GenerationRequest, SamplingParams, Token
from minimsg.errors import ConfigError, InvalidRequest
from minimsg.loading import load_engine

DRAWN = SamplingParams(temperature=1.0, seed=3)
STEMS = ([5] * 40, [1, 2, 3, 4] * 10, list(range(40)))


class Tape:
    """Forces ids in turn, and knows where it is."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    def mask(self) -> None:
        return None

    def forced(self) -> int:
        return 10 + len(self.ids)

    def advance(self, id: int) -> None:
        assert id == self.forced()
        self.ids.append(id)

    def rollback(self, n: int) -> None:
        assert 0 < n <= len(self.ids)
        del self.ids[-n:]


def same(first: Step, second: Step) -> bool:
    assert first.logits is not None
    assert second.logits is not None
    return (
        (first.number, first.batch, first.outputs, first.pages)
        == (second.number, second.batch, second.outputs, second.pages)
    ) and torch.equal(first.logits, second.logits)


def test_the_logits_of_a_step_are_what_its_tokens_were_chosen_from(folder: Path) -> None:
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=16))
    sampling = SamplingParams(temperature=0)
    plain = engine.generate([7, 8, 9], max_tokens=5)
    steps = list(engine.steps(GenerationRequest("r", [7, 8, 9], 5, sampling=sampling)))
    tokens = [each for step in steps for each in step.outputs if isinstance(each, Token)]
    assert [(each.id, each.logprob) for each in tokens] == [
        (each.id, each.logprob) for each in plain
    ]
    for step, token in zip(steps, tokens, strict=True):
        assert step.logits is not None
        (row,) = step.logits
        assert int(row.argmax()) == token.id
        assert float(row.log_softmax(-1)[token.id]) == pytest.approx(token.logprob, abs=1e-6)
    assert [step.number for step in steps] == [1, 2, 3, 4, 5]


def test_the_map_says_whose_each_page_is(make_engine: Any) -> None:
    engine = make_engine(num_pages=9)
    first, second = list(range(34)), list(range(50, 60))
    steps = engine.steps(GenerationRequest("a", first, 9), GenerationRequest("b", second, 9))
    pages = next(steps).pages
    assert {id: len(held) for id, held in pages.tables.items()} == {"a": 3, "b": 1}
    assert sorted(users[0] for users in pages.users if users) == ["a", "a", "a", "b"]
    assert (pages.num_free, pages.cached) == (5, frozenset())
    steps.close()
    (step,) = engine.steps(GenerationRequest("c", first, 1))
    assert step.pages.cached == frozenset(pages.tables["a"][:2])
    assert step.pages.num_free == 7


def test_who_does_not_ask_for_the_next_step_has_paused_the_engine(make_engine: Any) -> None:
    engine = make_engine()
    steps = engine.steps(GenerationRequest("a", [1, 2], 4))
    next(steps)
    (sequence,) = engine.scheduler.running
    assert sequence.num_generated == 1
    next(steps)
    assert sequence.num_generated == 2


def test_a_loop_that_is_left_cancels_what_runs(make_engine: Any) -> None:
    engine = make_engine()
    for _ in engine.steps(GenerationRequest("a", [1, 2], 40)):
        break
    assert not engine.scheduler.running
    with pytest.raises(InvalidRequest):
        next(engine.steps(GenerationRequest("b", [1], 4), GenerationRequest("c", [], 4)))
    assert not engine.scheduler.sequences


def test_a_hook_takes_back_the_ids_of_steps_that_are(make_engine: Any) -> None:
    engine, tape = make_engine(), Tape()
    steps = engine.steps(GenerationRequest("a", [1, 2], 6, hook=tape, sampling=DRAWN), keep=10)
    every = list(steps)
    assert tape.ids == [10, 11, 12, 13, 14, 15]
    steps.rewind(4)
    assert tape.ids == [10, 11]
    steps.rewind(1)
    assert tape.ids == [10]
    assert all(same(*pair) for pair in zip(every[1:], steps, strict=True))
    steps.rewind(6)
    assert tape.ids == []


def test_functions_see_again_what_was_taken_back(folder: Path) -> None:
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=16))
    seen: list[int] = []

    def steer(values: Any, place: Any) -> Any:
        seen.extend(place.positions)
        return values * 1.5

    request = GenerationRequest("a", [1, 2, 3], 4, sampling=DRAWN)
    steps = engine.steps(request, hooks={"a": {"blocks.0.hook_resid_post": steer}}, keep=4)
    every = list(steps)
    steps.rewind(3)
    assert all(same(*pair) for pair in zip(every[1:], steps, strict=True))
    assert seen == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert engine.add(GenerationRequest("b", [1, 2, 3] * 6, 1)).reused == 0


def test_more_steps_than_are_kept_cannot_be_taken_back(make_engine: Any) -> None:
    engine = make_engine()
    steps = engine.steps(GenerationRequest("a", [1, 2], 6), keep=2)
    for _ in range(4):
        next(steps)
    with pytest.raises(ConfigError, match="3 steps back; 2 are kept"):
        steps.rewind(3)
    with pytest.raises(ConfigError, match="kept already"):
        engine.steps(GenerationRequest("b", [1], 1), keep=1)
    steps.close()
    with pytest.raises(ConfigError, match="no steps are kept"):
        steps.rewind()
    assert engine.runner.journal is None


class Rewinding(RuleBasedStateMachine):
    """Requests come, steps are taken and taken back; the log is what each step was at first."""

    kernel: str | None = None
    deterministic = False
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        config = EngineConfig(
            dtype="float32",
            num_pages=10,
            max_context=112,
            max_step_tokens=24,
            max_sequences=3,
            speculate=0 if self.deterministic else 4,
            kernel=self.kernel,
            deterministic=self.deterministic,
        )
        self.engine = load_engine(self.folder, config)
        self.num_requests = 0
        self.log: list[Step] = []
        self.cursor = 0
        self.changes: list[int] = []  # where in the log requests came or went
        self.steps = self.begin()

    def begin(self) -> Steps:
        return self.engine.steps(keep=8)

    @initialize()
    def first(self) -> None:
        self.add(1)

    @rule(seed=st.integers(0, 2**16))
    def add(self, seed: int) -> None:
        self.change()
        numbers, id = Random(seed), f"r{self.num_requests}"
        self.num_requests += 1
        ids = numbers.choice(STEMS)[: numbers.randint(1, 40)]
        request = GenerationRequest(
            id, ids, numbers.randint(1, 8), sampling=DRAWN, marks=(CacheMark(len(ids), 300),)
        )
        if numbers.random() < 0.3:
            request = replace(request, hook=Tape())
        if numbers.random() < 0.3:
            request = replace(request, passages=((0, len(ids)),))
        self.steps.add(request)

    def change(self) -> None:
        """What was to come next, comes otherwise."""
        del self.log[self.cursor :]
        self.changes.append(self.cursor)

    @precondition(lambda self: self.engine.has_work)
    @rule(number=st.integers(1, 4))
    def step(self, number: int) -> None:
        for step in (next(self.steps, None) for _ in range(number)):
            if step is None:
                return
            if self.cursor < len(self.log):
                assert same(step, self.log[self.cursor])
            else:
                self.log.append(step)
            self.cursor += 1

    @rule(share=st.floats(0, 1))
    def rewind(self, share: float) -> None:
        number = round(share * min(8, self.cursor, len(self.steps)))
        self.steps.rewind(number)
        self.cursor -= number
        undone = [place for place in self.changes if place > self.cursor]
        if undone:  # those have not come or gone
            del self.log[min(undone) :]
            self.changes = [place for place in self.changes if place <= self.cursor]

    @rule(share=st.floats(0, 1))
    def cancel(self, share: float) -> None:
        self.change()
        for sequence in self.engine.scheduler.sequences[: round(share)]:
            self.engine.cancel(sequence.request.id)

    @invariant()
    def everything_holds(self) -> None:
        self.engine.scheduler.check()

    def teardown(self) -> None:
        said = [each for step in self.log[: self.cursor] for each in step.outputs]
        for step in self.steps:
            said += step.outputs
        finished = [each.request_id for each in said if isinstance(each, Finish)]
        assert len(finished) == len(set(finished))
        assert self.engine.pool.num_used == 0
        self.steps.close()


@pytest.fixture(scope="module", autouse=True)
def model_of_the_machine(folder: Path) -> None:
    Rewinding.folder = folder


class RewindingTiles(Rewinding):
    kernel = "tiled"
    deterministic = True


QUICK = settings(max_examples=12, stateful_step_count=25, derandomize=True)
TestRewinding = Rewinding.TestCase
TestRewinding.settings = QUICK
TestRewindingTiles = RewindingTiles.TestCase
TestRewindingTiles.settings = settings(max_examples=4, stateful_step_count=15, derandomize=True)
