"""Drawing against transformers' own logits processors, and against the counts of many draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from minimsg.engine.draw import LINE, argmax, draw, rank, uniform
from minimsg.engine.sampler import penalize
from minimsg.engine.types import SamplingParams

NUM_DRAWS = 5_000


def scores_of(vocab_size: int, seed: int, scale: float = 3.0) -> Tensor:
    return torch.randn(1, vocab_size, generator=torch.Generator().manual_seed(seed)) * scale


def oracle(scores: Tensor, params: SamplingParams, ids: list[int]) -> Tensor:
    """(V,) probabilities that transformers samples from."""
    processors: list[Any] = []
    if params.repetition_penalty != 1:
        processors.append(RepetitionPenaltyLogitsProcessor(params.repetition_penalty))
    processors.append(TemperatureLogitsWarper(params.temperature))
    if params.top_k:
        processors.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        processors.append(TopPLogitsWarper(params.top_p))
    filtered = LogitsProcessorList(processors)(torch.LongTensor([ids]), scores.double())
    return torch.softmax(filtered, -1)[0]


def counts_of(scores: Tensor, params: SamplingParams, numbers: list[float]) -> Tensor:
    """(V,) how often each id is drawn at the given numbers."""
    ids = draw(scores.expand(len(numbers), -1), [params] * len(numbers), numbers)
    return torch.bincount(torch.tensor(ids), minlength=scores.shape[-1])


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.3),
        SamplingParams(temperature=2.0),
        SamplingParams(temperature=1.0, top_k=5),
        SamplingParams(temperature=1.0, top_k=300),
        SamplingParams(temperature=1.5, top_k=100_000),
        SamplingParams(temperature=1.0, top_p=0.9),
        SamplingParams(temperature=2.0, top_p=0.999),
        SamplingParams(temperature=0.8, top_k=40, top_p=0.7),
        SamplingParams(temperature=1.0, top_k=20, top_p=0.9, repetition_penalty=1.4),
    ],
    ids=str,
)
def test_ids_are_drawn_with_the_probabilities_of_transformers(params: SamplingParams) -> None:
    scores, seen = scores_of(500, seed=3), [1, 7, 7, 300]
    probabilities = oracle(scores, params, seen)
    mine = scores.clone()
    penalize(mine[0], seen, params.repetition_penalty)
    # Evenly spread numbers make the count of an id its probability, up to one draw at each end.
    spread = [(index + 0.5) / NUM_DRAWS for index in range(NUM_DRAWS)]
    counts = counts_of(mine, params, spread)
    assert (counts - probabilities * NUM_DRAWS).abs().max() <= 1.01
    assert not counts[probabilities == 0].any()


def test_many_seeds_pass_a_chi_square_test() -> None:
    params = SamplingParams(temperature=1.0, top_k=8)
    scores = scores_of(50, seed=4, scale=1.0)
    numbers = [uniform(seed, 17) for seed in range(NUM_DRAWS)]
    counts = counts_of(scores, params, numbers)
    expected = oracle(scores, params, []) * NUM_DRAWS
    kept = expected > 0
    statistic = float(((counts - expected)[kept] ** 2 / expected[kept]).sum())
    assert int(kept.sum()) == 8
    assert statistic < 24.3  # 7 degrees of freedom: exceeded once in a thousand


def test_numbers_of_neighbouring_positions_and_seeds_are_even_and_unrelated() -> None:
    for numbers in (
        [uniform(5, position) for position in range(NUM_DRAWS)],
        [uniform(seed, 5) for seed in range(NUM_DRAWS)],
    ):
        values = torch.tensor(numbers, dtype=torch.float64)
        assert 0 <= float(values.min()) < float(values.max()) < 1
        assert float(values.mean()) == pytest.approx(0.5, abs=0.02)  # 5 standard errors
        lagged = torch.corrcoef(torch.stack([values[:-1], values[1:]]))[0, 1]
        assert abs(float(lagged)) < 5 / math.sqrt(NUM_DRAWS)


@settings(max_examples=200, derandomize=True)
@given(
    temperature=st.sampled_from([1e-300, 1e-9, 1e-3, 0.7, 2.0, 1e9]),
    top_k=st.sampled_from([0, 1, 2, 50, 255, 256, 257, 10_000]),
    top_p=st.sampled_from([0.0, 1e-9, 0.5, 0.999999, 1.0]),
    number=st.sampled_from([0.0, 1e-17, 0.5, 1 - 2.0**-53]),
    vocab_size=st.sampled_from([1, 3, 256, 257, 1000]),
    levels=st.sampled_from([1, 3, 1000]),
)
def test_any_extreme_draws_an_id_that_the_oracle_allows(
    temperature: float, top_k: int, top_p: float, number: float, vocab_size: int, levels: int
) -> None:
    scores = (scores_of(vocab_size, seed=1) * levels).round() / levels  # few levels: many ties
    params = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p)
    (id,) = draw(scores, [params], [number])
    wider = replace(params, top_p=min(1.0, top_p * 1.00001))  # float32 sums decide at the edge
    allowed = oracle(scores, wider, [])
    equals = scores[0] == scores[0, id]  # which of equal ids survive a cut is left open
    assert allowed[equals].max() > 0 or scores[0, id] == scores.max()


@settings(max_examples=100, derandomize=True)
@given(seed=st.integers(0, 1000), number=st.floats(0, 1, exclude_max=True), ties=st.booleans())
def test_a_row_is_drawn_alike_alone_and_among_others(seed: int, number: float, ties: bool) -> None:
    scores = torch.cat([scores_of(700, seed + row, scale=1 + row) for row in range(4)])
    scores = scores.round() if ties else scores
    params = [
        SamplingParams(),
        SamplingParams(top_k=3),
        SamplingParams(top_p=0.8),
        SamplingParams(temperature=1.7, top_k=400, top_p=0.99),
    ]
    together = draw(scores, params, [number] * 4)
    alone = [draw(scores[row, None], [params[row]], [number])[0] for row in range(4)]
    assert together == alone


@pytest.mark.parametrize("number", [0.9, 0.99996, 0.99999, 0.9999999])
@pytest.mark.parametrize("num_rows", [1, 3])
def test_of_a_flat_row_the_last_ids_are_drawn_too(num_rows: int, number: float) -> None:
    """49,152 small shares, which float32 does not add well one after the other."""
    row = torch.full((49_152,), -0.1)
    row[0] = 0.0
    weights = row.double().exp()
    wanted = int((weights.cumsum(0) <= number * weights.sum()).sum())
    params = [SamplingParams()] * num_rows
    assert draw(row.expand(num_rows, -1), params, [number] * num_rows) == [wanted] * num_rows


@pytest.mark.parametrize("width", [5, 40])
def test_equal_scores_rank_by_id(width: int) -> None:
    scores = torch.tensor([[1.0, 3.0, 2.0, 3.0] * 10])
    _, ids = rank(scores, width)
    best = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert set(ids[0, :5].tolist()) <= set(range(1, 40, 2))
    assert ids[0, :5].tolist() == sorted(ids[0, :5].tolist())
    if width == 40:
        assert ids[0, :10].tolist() == best


@settings(max_examples=200, derandomize=True)
@given(
    vocab_size=st.sampled_from([1, 101, 512, 4_000, 4_001, 8_192]),
    width=st.sampled_from([1, 2, 16, 200, 256]),
    levels=st.sampled_from([1, 3, 1_000]),
    is_masked=st.booleans(),
    seed=st.integers(0, 1_000),
)
def test_the_highest_scores_are_those_of_a_full_sort(
    vocab_size: int, width: int, levels: int, is_masked: bool, seed: int
) -> None:
    """Few levels: many ties; masked: fewer ids that are possible than are asked for."""
    scores = torch.cat([scores_of(vocab_size, seed + row) * levels for row in range(3)]).round()
    if is_masked:
        scores[:, 3:-3] = -torch.inf
    width = min(width, vocab_size)
    all_values, all_ids = torch.sort(scores, dim=-1, descending=True, stable=True)
    values, ids = rank(scores, width)
    assert torch.equal(values, all_values[:, :width])
    assert torch.equal(values, scores.gather(-1, ids))
    for row, num_above in enumerate((values > values[:, -1:]).sum(-1).tolist()):
        assert torch.equal(ids[row, :num_above], all_ids[row, :num_above])
        equals = ids[row, num_above:].tolist()
        assert equals == sorted(set(equals))


@pytest.mark.parametrize("vocab_size", [1, LINE, 4 * LINE, 4 * LINE + 1])
def test_the_argmax_is_the_lowest_id_of_the_highest_score(vocab_size: int) -> None:
    levels = torch.tensor([[1.0], [3.0], [0.0]])  # the last row: all are equal
    scores = (torch.cat([scores_of(vocab_size, seed=row) for row in range(3)]) * levels).round()
    scores[0, : vocab_size // 2] = -torch.inf
    assert argmax(scores).tolist() == [row.index(max(row)) for row in scores.tolist()]


def test_top_k_one_is_the_lowest_of_the_best_ids_even_among_many_ties() -> None:
    scores = torch.zeros(1, 5000)
    scores[0, 1234:] = 9.0
    assert draw(scores, [SamplingParams(top_k=1)], [0.999]) == [1234]
    assert draw(scores, [SamplingParams(top_p=0.0)], [0.999]) == [1234]


def test_a_nucleus_that_is_reached_exactly_needs_no_further_id() -> None:
    scores = torch.zeros(1, 4)
    assert draw(scores, [SamplingParams(top_p=0.5)], [0.999]) == [1]
    assert draw(scores, [SamplingParams(top_p=0.51)], [0.999]) == [2]
