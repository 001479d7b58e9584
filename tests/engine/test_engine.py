"""The engine from end to end on a model that reads its whole context back from the pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from minimsg.engine.types import (
    Batch,
    Finish,
    FinishReason,
    GenerationRequest,
    SamplingParams,
    Token,
)
from minimsg.errors import GenerationFailed, InvalidRequest
from minimsg.models.contract import Inputs

GREEDY = SamplingParams(temperature=0)
Expected = Callable[[Sequence[int], int], list[int]]


def requests(n: int, *, max_tokens: int = 20, longest: int = 60) -> list[GenerationRequest]:
    """`n` requests with prompts of different lengths, the longest first."""
    numbers = random.Random(7)
    return [
        GenerationRequest(
            f"r{index}",
            [numbers.randrange(97) for _ in range(max(1, longest - 3 * index))],
            max_tokens,
            sampling=GREEDY,
        )
        for index in range(n)
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_step_tokens": 7},
        {"max_sequences": 3},
        {"max_step_tokens": 7, "num_pages": 8},
        {"num_pages": 8},
    ],
    ids=["batch of 16", "chunks of 7", "3 at once", "chunks of 7 in 8 pages", "8 pages"],
)
def test_every_request_gets_the_tokens_that_it_gets_alone(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any, settings: dict[str, int]
) -> None:
    said = run(make_engine(**settings), *requests(16))
    for request in requests(16):
        assert ids_of(said[request.id]) == expected(request.prompt_ids, 20)


def test_eight_pages_do_preempt(make_engine: Any, run: Any) -> None:
    engine = make_engine(num_pages=8)
    scheduled: list[str] = []
    schedule = engine.scheduler.schedule

    def recording() -> Batch:
        batch: Batch = schedule()
        starts = zip(batch.request_ids, batch.query_starts[:-1], strict=True)
        scheduled.extend(id for id, row in starts if batch.positions[row] == 0)
        return batch

    engine.scheduler.schedule = recording
    run(engine, *requests(16))
    assert len(scheduled) > len(set(scheduled)) == 16  # some began twice


def test_sampled_tokens_depend_on_the_seed_and_on_no_neighbour(
    make_engine: Any, run: Any, ids_of: Any
) -> None:
    hot = [
        replace(request, sampling=SamplingParams(temperature=1.3, top_p=0.95, seed=index))
        for index, request in enumerate(requests(16))
    ]
    alone = {request.id: ids_of(run(make_engine(), request)[request.id]) for request in hot}
    for settings in ({}, {"max_step_tokens": 7}, {"num_pages": 8}):
        said = run(make_engine(**settings), *hot)
        assert {request.id: ids_of(said[request.id]) for request in hot} == alone
    other = replace(hot[0], sampling=replace(hot[0].sampling, seed=99))
    assert ids_of(run(make_engine(), other)["r0"]) != alone["r0"]


def test_a_request_without_a_seed_gets_a_fresh_one(make_engine: Any, run: Any, ids_of: Any) -> None:
    request = GenerationRequest("r", [1, 2, 3], 30, sampling=SamplingParams(temperature=2))
    engine = make_engine()
    assert ids_of(run(engine, request)["r"]) != ids_of(run(engine, request)["r"])


def test_greedy_and_hot_neighbours_do_not_change_each_other(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any
) -> None:
    both = [
        replace(request, sampling=sampling)
        for request, sampling in zip(
            requests(2), [GREEDY, SamplingParams(temperature=1, top_k=1, seed=3)], strict=True
        )
    ]
    said = run(make_engine(), *both)
    for request in both:  # top_k 1 is greedy by another way
        assert ids_of(said[request.id]) == expected(request.prompt_ids, 20)


@pytest.mark.parametrize("limits", [(1, 2, 3, 50, 1, 2), (2, 1, 50, 3, 2, 1)])
def test_requests_that_end_while_others_are_admitted_lose_nothing(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any, limits: tuple[int, ...]
) -> None:
    mixed = [
        replace(request, max_tokens=limit)
        for request, limit in zip(requests(6), limits, strict=True)
    ]
    said = run(make_engine(max_sequences=2, num_pages=8), *mixed)
    for request in mixed:
        assert ids_of(said[request.id]) == expected(request.prompt_ids, request.max_tokens)
        assert said[request.id][-1] == Finish(request.id, FinishReason.LENGTH)


def test_a_second_request_between_two_chunks_changes_nothing(
    make_engine: Any, expected: Expected
) -> None:
    first, second = (
        GenerationRequest("first", list(range(90)), 5, sampling=GREEDY),
        GenerationRequest("second", [4, 4, 4], 5, sampling=GREEDY),
    )
    engine = make_engine(max_step_tokens=16)
    engine.add(first)
    said = [*engine.step(), *engine.step()]
    engine.add(second)
    while engine.has_work:
        said += engine.step()
    for request in (first, second):
        ids = [o.id for o in said if isinstance(o, Token) and o.request_id == request.id]
        assert ids == expected(request.prompt_ids, 5)


def test_an_end_id_is_said_and_ends_the_turn(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any
) -> None:
    ids = expected([5, 6], 20)
    stop = next(id for id in ids[5:] if id not in ids[:5])
    request = GenerationRequest("r", [5, 6], 50, frozenset({stop}), GREEDY)
    said = run(make_engine(), request)["r"]
    assert ids_of(said) == ids[: ids.index(stop) + 1]
    assert said[-1] == Finish("r", FinishReason.END)


def test_the_window_ends_a_reply_without_an_id_too_many(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any
) -> None:
    request = GenerationRequest("r", [1] * 50, 1000, sampling=GREEDY)
    said = run(make_engine(max_context=64), request)["r"]
    assert ids_of(said) == expected([1] * 50, 14)
    assert said[-1] == Finish("r", FinishReason.CONTEXT)


def test_end_goes_before_length_and_length_before_context(
    make_engine: Any, run: Any, expected: Expected
) -> None:
    (last,) = expected([1] * 63, 1)
    request = GenerationRequest("r", [1] * 63, 1, frozenset({last}), GREEDY)
    assert run(make_engine(max_context=64), request)["r"][-1].reason is FinishReason.END
    request = replace(request, end_ids=frozenset())
    assert run(make_engine(max_context=64), request)["r"][-1].reason is FinishReason.LENGTH
    request = replace(request, max_tokens=2)
    assert run(make_engine(max_context=64), request)["r"][-1].reason is FinishReason.CONTEXT


def test_a_prompt_that_fills_the_window_is_not_run(make_engine: Any, run: Any, model: Any) -> None:
    calls: list[Inputs] = []
    model.on_call = calls.append
    request = GenerationRequest("r", [1] * 64, 5)
    assert run(make_engine(max_context=64), request)["r"] == [Finish("r", FinishReason.CONTEXT)]
    assert not calls


def test_no_tokens_wanted_only_fills_the_cache(make_engine: Any, run: Any, model: Any) -> None:
    calls: list[Inputs] = []
    model.on_call = calls.append
    for length in (1, 40, 64):
        request = GenerationRequest("r", [1] * length, 0)
        engine = make_engine(max_context=64, max_step_tokens=24)
        assert run(engine, request)["r"] == [Finish("r", FinishReason.LENGTH)]
    assert sum(len(inputs.ids) for inputs in calls) == 1 + 40 + 64


def test_page_tables_are_padded_with_a_page_that_exists(
    make_engine: Any, run: Any, model: Any
) -> None:
    calls: list[Inputs] = []
    model.on_call = calls.append
    long, short = requests(1, max_tokens=1)[0], GenerationRequest("short", [1], 1)
    run(make_engine(), long, short)
    (inputs,) = calls
    assert inputs.layout.context_lens == [1, 60]
    assert inputs.layout.page_tables[0, 1:].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "bad",
    [
        {"prompt_ids": []},
        {"prompt_ids": [1] * 129},
        {"prompt_ids": [97]},
        {"prompt_ids": [-1]},
        {"max_tokens": -1},
        {"sampling": SamplingParams(temperature=float("nan"))},
        {"sampling": SamplingParams(temperature=-1)},
        {"sampling": SamplingParams(temperature=float("inf"))},
        {"sampling": SamplingParams(top_p=1.1)},
        {"sampling": SamplingParams(top_p=float("nan"))},
        {"sampling": SamplingParams(top_k=-1)},
        {"sampling": SamplingParams(repetition_penalty=0)},
        {"sampling": SamplingParams(top_logprobs=257)},
    ],
)
def test_numbers_that_would_harm_a_batch_are_refused(make_engine: Any, bad: dict[str, Any]) -> None:
    engine = make_engine()
    with pytest.raises(InvalidRequest):
        engine.add(replace(GenerationRequest("r", [1], 1), **bad))
    assert not engine.has_work


@pytest.mark.parametrize("max_step_tokens", [7, 512])
def test_what_fails_whenever_it_is_computed_ends_and_its_neighbours_do_not_notice(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any, max_step_tokens: int
) -> None:
    engine = make_engine(max_step_tokens=max_step_tokens)
    clean = engine.runner.run

    def fail(batch: Batch) -> torch.Tensor:
        if "r1" in batch.request_ids:
            raise RuntimeError("out of memory")
        logits: torch.Tensor = clean(batch)
        return logits

    engine.runner.run = fail
    said = run(engine, *requests(4))
    assert said["r1"] == [Finish("r1", FinishReason.ERROR, "RuntimeError: out of memory")]
    for request in requests(4):
        if request.id != "r1":
            assert ids_of(said[request.id]) == expected(request.prompt_ids, 20)


def test_a_step_that_fails_once_loses_nothing(
    make_engine: Any, run: Any, model: Any, expected: Expected, ids_of: Any
) -> None:
    engine = make_engine(max_sequences=2)

    def fail(inputs: Inputs) -> None:
        model.on_call = lambda inputs: None
        raise RuntimeError("a passing fault")

    model.on_call = fail
    said = run(engine, *requests(4))
    for request in requests(4):
        assert ids_of(said[request.id]) == expected(request.prompt_ids, 20)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_end_their_row_only(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any, poison: float
) -> None:
    engine = make_engine()
    clean, steps = engine.runner.run, [0]

    def poisoned(batch: Any) -> torch.Tensor:
        logits: torch.Tensor = clean(batch).clone()
        steps[0] += 1
        if steps[0] == 4:
            logits[batch.sample_ids.index("r1"), 13] = poison
        return logits

    engine.runner.run = poisoned
    said = run(engine, *requests(3))
    assert [type(output) for output in said["r1"]] == [Token, Token, Token, Finish]
    assert said["r1"][-1].error == "the model's logits are not finite"
    for request in (requests(3)[0], requests(3)[2]):
        assert ids_of(said[request.id]) == expected(request.prompt_ids, 20)


class Hook:
    """Allows only some ids, and fails where it is told to."""

    def __init__(self, allowed: list[int], *, fail_in: str = "") -> None:
        self.allowed, self.fail_in = allowed, fail_in
        self.seen: list[int] = []

    def _fail(self, where: str) -> None:
        if self.fail_in == where and len(self.seen) >= 2:
            raise ValueError(f"no rule in {where}")

    def mask(self) -> list[int] | None:
        self._fail("mask")
        return self.allowed

    def forced(self) -> int | None:
        self._fail("forced")
        return 42 if len(self.seen) == 1 else None

    def advance(self, id: int) -> None:
        self.seen.append(id)
        self._fail("advance")

    def rollback(self, n: int) -> None:
        raise AssertionError("nothing is taken back here")


@pytest.mark.parametrize("temperature", [0, 1])
def test_a_hook_decides_what_may_come_and_what_must(
    make_engine: Any, run: Any, ids_of: Any, temperature: float
) -> None:
    hook = Hook([3, 5, 8])
    sampling = SamplingParams(temperature=temperature, seed=1)
    constrained = GenerationRequest("c", [9, 9], 12, sampling=sampling, hook=hook)
    said = run(make_engine(num_pages=8), *requests(4), constrained)
    ids = ids_of(said["c"])
    assert ids == hook.seen
    assert ids[1] == 42
    assert {*ids[:1], *ids[2:]} <= {3, 5, 8}


@pytest.mark.parametrize("place", ["mask", "forced", "advance"])
def test_a_hook_that_raises_ends_its_own_request_only(
    make_engine: Any, run: Any, expected: Expected, ids_of: Any, place: str
) -> None:
    hook = Hook([3, 5, 8], fail_in=place)
    constrained = GenerationRequest("c", [9, 9], 12, sampling=GREEDY, hook=hook)
    said = run(make_engine(), constrained, *requests(3))
    assert said["c"][-1] == Finish("c", FinishReason.ERROR, f"ValueError: no rule in {place}")
    assert len(said["c"]) == 3
    for request in requests(3):
        assert ids_of(said[request.id]) == expected(request.prompt_ids, 20)


@pytest.mark.parametrize("allowed", [[], [97], [-1]])
def test_a_hook_that_allows_nothing_ends_its_request(
    make_engine: Any, run: Any, allowed: list[int]
) -> None:
    request = GenerationRequest("c", [9, 9], 12, sampling=GREEDY, hook=Hook(allowed))
    (finish,) = run(make_engine(), request)["c"]
    assert finish.reason is FinishReason.ERROR
    assert "the constraint allows" in finish.error


@pytest.mark.parametrize("steps_before", [0, 1, 2, 5, 8])
def test_cancelling_frees_the_pages_at_once_in_any_state(
    make_engine: Any, steps_before: int
) -> None:
    engine = make_engine(max_step_tokens=32)
    engine.add(GenerationRequest("r", [1] * 60, 4, sampling=GREEDY))
    said = [output for _ in range(steps_before) for output in engine.step()]
    engine.cancel("r")
    engine.cancel("r")
    assert engine.pool.num_used == 0
    while engine.has_work:
        said += engine.step()
    finishes = [output for output in said if isinstance(output, Finish)]
    reason = FinishReason.LENGTH if steps_before >= 5 else FinishReason.CANCELLED
    assert finishes == [Finish("r", reason)]
    assert said[-1] == finishes[0]


def test_generate_returns_the_tokens_and_leaves_nothing_behind(
    make_engine: Any, expected: Expected
) -> None:
    engine = make_engine()
    tokens = engine.generate([1, 2, 3], max_tokens=7)
    assert [token.id for token in tokens] == expected([1, 2, 3], 7)
    assert engine.pool.num_used == 0


def test_generate_raises_the_cause_of_a_failure(make_engine: Any, model: Any) -> None:
    def fail(inputs: Inputs) -> None:
        raise RuntimeError("no device")

    model.on_call = fail
    with pytest.raises(GenerationFailed, match="no device"):
        make_engine().generate([1, 2, 3], max_tokens=7)


def test_leaving_the_steps_early_cancels_what_was_running(make_engine: Any) -> None:
    engine = make_engine()
    for step in engine.steps(*requests(3)):
        assert len(step.batch.request_ids) == 3
        break
    engine.step()
    assert not engine.has_work
    assert engine.pool.num_used == 0


def test_logprobs_are_those_of_the_models_own_distribution(
    make_engine: Any, logits_of: Callable[[Sequence[int]], torch.Tensor]
) -> None:
    sampling = SamplingParams(temperature=0.2, top_k=3, seed=5, top_logprobs=4)
    ids = [1, 2, 3]
    for token in make_engine().generate(ids, max_tokens=5, sampling=sampling):
        logprobs = torch.log_softmax(logits_of(ids), -1)
        best = torch.topk(logprobs, 4)
        assert token.logprob == pytest.approx(float(logprobs[token.id]), abs=1e-5)
        assert [id for id, _ in token.top] == best.indices.tolist()
        assert [each for _, each in token.top] == pytest.approx(best.values.tolist(), abs=1e-5)
        ids.append(token.id)
