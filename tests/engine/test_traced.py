"""A traced request: what its steps and tokens tell, while its neighbours tell nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from minimsg.engine.types import GenerationRequest, Output, SamplingParams, Stepped, Token

from .conftest import VOCAB, MakeEngine, Run

PROMPT = list(range(40))


def asked(id: str = "seen", **fields: Any) -> GenerationRequest:
    sampling = SamplingParams(temperature=1, seed=5, top_logprobs=4)
    request = GenerationRequest(id, PROMPT, 12, sampling=sampling, is_traced=True)
    return replace(request, **fields)


def steps_in(outputs: Sequence[Output]) -> list[Stepped]:
    return [each for each in outputs if isinstance(each, Stepped)]


def tokens_in(outputs: Sequence[Output]) -> list[Token]:
    return [each for each in outputs if isinstance(each, Token)]


class Only:
    """A hook that allows a few ids, or forces one, and has a name."""

    name = "the few"

    def __init__(self, ids: list[int], forced: int | None = None) -> None:
        self._ids = ids
        self._forced = forced

    def mask(self) -> list[int]:
        return self._ids

    def forced(self) -> int | None:
        return self._forced

    def advance(self, id: int) -> None: ...

    def rollback(self, n: int) -> None: ...


def test_steps_say_what_they_computed_and_with_whom(make_engine: MakeEngine, run: Run) -> None:
    said = run(make_engine(max_step_tokens=17), asked(), asked("other", is_traced=False))
    steps = steps_in(said["seen"])
    assert [(step.start, step.stop) for step in steps[:1]] != [(0, 40)]
    assert [step.stop for step in steps[:-1]] == [step.start for step in steps[1:]]
    assert (steps[0].start, steps[-1].stop) == (0, len(PROMPT) + 11)
    assert [step.change for step in steps] == ["admitted", *[None] * (len(steps) - 1)]
    assert all(len(step.pages) == -(-step.stop // 16) - step.start // 16 for step in steps)
    assert {step.num_sequences for step in steps} == {1, 2} or steps[0].num_sequences == 2
    assert all(step.num_tokens <= 17 for step in steps)
    assert steps_in(said["other"]) == []
    assert {token.choice for token in tokens_in(said["other"])} == {None}


def test_a_step_is_told_before_its_token(make_engine: MakeEngine, run: Run) -> None:
    kinds = [type(each) for each in run(make_engine(), asked())["seen"]]
    assert kinds[:-1] == [Stepped, Token] * 12


def test_who_is_preempted_or_begun_anew_says_so(make_engine: MakeEngine, run: Run) -> None:
    requests = [asked(str(number), max_tokens=60) for number in range(4)]
    said = run(make_engine(num_pages=8, no_prefix_cache=True), *requests)
    changed = [step for outputs in said.values() for step in steps_in(outputs)[1:] if step.change]
    assert {step.change for step in changed} == {"preempted"}
    assert {step.start for step in changed} == {0}


def test_tracing_changes_no_id(make_engine: MakeEngine, run: Run, ids_of: Any) -> None:
    traced = run(make_engine(), asked())["seen"]
    plain = run(make_engine(), asked(is_traced=False))["seen"]
    assert ids_of(traced) == ids_of(plain)


def test_entropy_is_that_of_the_models_own_distribution(
    make_engine: MakeEngine, run: Run, logits_of: Callable[[Sequence[int]], Tensor]
) -> None:
    ids = list(PROMPT)
    for token in tokens_in(run(make_engine(), asked())["seen"]):
        logprobs = torch.log_softmax(logits_of(ids).double(), dim=-1)
        assert token.choice is not None
        assert token.choice.entropy == pytest.approx(float(-(logprobs.exp() @ logprobs)), abs=1e-5)
        best = logprobs.topk(4)
        assert [id for id, _ in token.top] == best.indices.tolist()
        ids.append(token.id)


@pytest.mark.parametrize(
    ("hook", "share", "forced_by"),
    [
        (None, None, None),
        (Only([3, 4, 5]), 3 / VOCAB, None),
        (Only([3]), 1 / VOCAB, "the few"),
        (Only([3, 4, 5], forced=4), 1 / VOCAB, "the few"),
    ],
    ids=["free", "three ids", "one id", "forced"],
)
def test_what_a_hook_leaves_is_told(
    make_engine: MakeEngine, run: Run, hook: Only | None, share: float | None, forced_by: str | None
) -> None:
    for token in tokens_in(run(make_engine(), asked(hook=hook))["seen"]):
        assert token.choice is not None
        assert (token.choice.allowed, token.choice.forced_by) == (share, forced_by)
