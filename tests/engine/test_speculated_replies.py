"""Replies with speculation are those without, token for token: the model here goes in circles.

What is drafted is often right then, and as often not, where ids are drawn. The oracle is the
same request alone, in an engine that does not speculate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import (
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    SamplingParams,
    Token,
)
from minimsg.errors import ConfigError

from .conftest import ContextModel, context_logits

SAMPLINGS = (
    SamplingParams(temperature=0),
    SamplingParams(temperature=0, repetition_penalty=1.05, top_logprobs=2),
    SamplingParams(temperature=1.2, top_p=0.95, seed=3),
    SamplingParams(temperature=2, top_k=5, seed=4, repetition_penalty=1.1, top_logprobs=3),
    SamplingParams(temperature=2.2, seed=5),
)


@cache
def logits_after(id: int) -> Tensor:
    """(V,) of the id alone."""
    return context_logits([id])


def circling_logits(ids: Sequence[int]) -> Tensor:
    """(V,) that the last id decides nearly alone, all others a little."""
    return 3 * logits_after(ids[-1]) + context_logits(ids) / 4


def engine(logits: Callable[[Sequence[int]], Tensor] = circling_logits, **settings: Any) -> Engine:
    model: Any = ContextModel(logits)
    return Engine(model, EngineConfig(**settings), max_context=128)


@pytest.fixture(scope="module")
def requests() -> list[GenerationRequest]:
    """Prompts of few different ids, which repeat themselves; some end early."""
    numbers = random.Random(9)
    return [
        GenerationRequest(
            f"r{index}",
            [numbers.randrange(6) for _ in range(numbers.randint(1, 50))],
            numbers.choice((3, 25, 50)),
            frozenset({90, 91} if index % 2 else ()),
            sampling=SAMPLINGS[index % len(SAMPLINGS)],
        )
        for index in range(10)
    ]


@pytest.fixture(scope="module")
def alone(requests: list[GenerationRequest]) -> dict[str, list[Output]]:
    plain = engine()
    return {each.id: told(plain, [each])[each.id] for each in requests}


def told(engine: Engine, requests: list[GenerationRequest]) -> dict[str, list[Output]]:
    """What is said of each; checked after every step."""
    said: dict[str, list[Output]] = {each.id: [] for each in requests}
    for each in requests:
        engine.add(each)
    while engine.has_work:
        for output in engine.step():
            said[output.request_id].append(output)
        engine.scheduler.check()
    return said


def assert_same(one: list[Output], other: list[Output]) -> None:
    """The same ids and end; log probabilities but for the order in which floats are summed."""
    assert [type(each) for each in one] == [type(each) for each in other]
    for each, like in zip(one, other, strict=True):
        if isinstance(each, Token) and isinstance(like, Token):
            assert each.id == like.id
            assert each.logprob == pytest.approx(like.logprob, abs=1e-5)
            assert [id for id, _ in each.top] == [id for id, _ in like.top]
        else:
            assert each == like


@pytest.mark.parametrize("speculate", [1, 6])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_sequences": 1},
        {"max_sequences": 2},
        {"max_sequences": 3},
        {"max_sequences": 2, "max_step_tokens": 6},
        {"max_sequences": 2, "num_pages": 8},
        {"max_sequences": 2, "num_pages": 8, "max_step_tokens": 6, "no_prefix_cache": True},
    ],
    ids=str,
)
def test_speculation_changes_no_token(
    requests: list[GenerationRequest],
    alone: dict[str, list[Output]],
    settings: dict[str, Any],
    speculate: int,
) -> None:
    speculating = engine(speculate=speculate, **settings)
    said = told(speculating, requests)
    for each in requests:
        assert_same(said[each.id], alone[each.id])
    counts = speculating.draft_counts
    assert 0 < counts.accepted < counts.proposed
    assert "num_pages" not in settings or speculating.scheduler.num_preemptions


def test_what_repeats_itself_takes_far_fewer_steps() -> None:
    request = GenerationRequest("r", [1, 2, 3], 100, sampling=SAMPLINGS[0])
    loop = engine(lambda ids: logits_after(ids[-1]), speculate=8)
    num_steps = sum(1 for _ in loop.steps(request))
    assert num_steps < 100 / 3


class Recording:
    """A hook whose mask depends on the ids that it was told, and that fails where it is told to."""

    def __init__(self, fail_in: str = "", fail_at: int = -1) -> None:
        self.told: list[int] = []
        self.num_told = self.num_taken_back = 0
        self._fails = (fail_in, fail_at)

    def _fail(self, where: str) -> None:
        if self._fails == (where, len(self.told)):
            raise ValueError(f"no rule in {where}")

    def mask(self) -> list[int]:
        return [id for id in range(20) if id % 5 != len(self.told) % 5]

    def forced(self) -> int | None:
        self._fail("forced")
        return 7 if len(self.told) % 11 == 10 else None

    def advance(self, id: int) -> None:
        self.told.append(id)
        self.num_told += 1
        self._fail("advance")

    def rollback(self, n: int) -> None:
        assert n > 0
        del self.told[-n:]
        self.num_taken_back += n


def constrained(hook: Recording, sampling: SamplingParams) -> GenerationRequest:
    return GenerationRequest("c", [1, 2, 1, 2, 1, 2], 60, sampling=sampling, hook=hook)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_a_hook_is_told_each_id_once_and_leads_the_reply_as_without(
    sampling: SamplingParams,
) -> None:
    hook, plain = Recording(), Recording()
    speculating = engine(speculate=5)
    said = told(speculating, [constrained(hook, sampling)])["c"]
    assert_same(said, told(engine(), [constrained(plain, sampling)])["c"])
    assert speculating.draft_counts.accepted
    assert hook.told == plain.told == [each.id for each in said if isinstance(each, Token)]
    assert (hook.num_told, hook.num_taken_back) == (60, 0)


@pytest.mark.parametrize("fail_at", range(1, 40))
@pytest.mark.parametrize("where", ["forced", "advance"])
def test_a_hook_that_raises_ends_the_reply_where_it_would_without(where: str, fail_at: int) -> None:
    hooks = Recording(where, fail_at), Recording(where, fail_at)
    said = told(engine(speculate=5), [constrained(hooks[0], SAMPLINGS[0])])["c"]
    assert_same(said, told(engine(), [constrained(hooks[1], SAMPLINGS[0])])["c"])
    assert said[-1] == Finish("c", FinishReason.ERROR, f"ValueError: no rule in {where}")


def test_what_a_hook_was_told_in_a_step_that_failed_is_taken_back() -> None:
    hook, plain = Recording(), Recording()
    speculating = engine(speculate=5)
    sample = speculating.sampler.sample

    def failing(*args: Any) -> Any:
        sampled = sample(*args)
        if hook.num_told > 20 and not hook.num_taken_back and hook.told and len(sampled[0]) > 2:
            raise RuntimeError("a passing fault")
        return sampled

    speculating.sampler.sample = failing  # type: ignore[method-assign, assignment]
    said = told(speculating, [constrained(hook, SAMPLINGS[0])])["c"]
    assert hook.num_taken_back >= 2
    assert_same(said, told(engine(), [constrained(plain, SAMPLINGS[0])])["c"])
    assert hook.told == plain.told


@pytest.mark.parametrize("row", [0, 1, 2])
def test_numbers_that_are_not_finite_end_a_reply_after_the_sound_ones(row: int) -> None:
    """The reply is [.., x, y, x, y ..]: which of the rows of a step is broken, is seen in none."""
    request = GenerationRequest("r", [1, 2, 3], 60, sampling=SAMPLINGS[0])
    whole = told(engine(), [request])["r"]
    broken_at = 3 + 20 + row  # ids before the one that cannot be had

    def broken(ids: Sequence[int]) -> Tensor:
        return circling_logits(ids) * (torch.nan if len(ids) == broken_at else 1)

    speculating = engine(broken, speculate=4)
    *tokens, finish = told(speculating, [request])["r"]
    assert isinstance(finish, Finish)
    assert finish.error == "the model's logits are not finite"
    assert_same(tokens, whole[: broken_at - 3])


def test_a_request_that_is_cancelled_in_a_step_says_nothing_of_it(
    requests: list[GenerationRequest],
) -> None:
    request = replace(requests[0], max_tokens=100, sampling=SAMPLINGS[0], end_ids=frozenset())
    speculating = engine(speculate=4)
    speculating.add(request)
    while not (batch := speculating.batch) or len(batch.sample_rows) < 3:
        speculating.step()
    run = speculating.runner.run

    def cancelling(batch: Any) -> Tensor:
        speculating.cancel(request.id)
        return run(batch)

    speculating.runner.run = cancelling  # type: ignore[method-assign]
    assert speculating.step() == [Finish(request.id, FinishReason.CANCELLED)]
    assert speculating.pool.num_used == 0


def test_deterministic_mode_does_not_speculate() -> None:
    with pytest.raises(ConfigError, match="deterministic"):
        engine(speculate=4, deterministic=True)
