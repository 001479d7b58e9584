"""What the sampler adds to drawing: exact greedy, penalties as transformers, log probabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from minimsg.engine.sampler import Sampler, penalize
from minimsg.engine.types import (
    BitMask,
    Finish,
    GenerationRequest,
    Sampled,
    SamplingParams,
    Sequence,
    Token,
)


def sequence(sampling: SamplingParams, ids: list[int] | None = None) -> Sequence:
    request = GenerationRequest("r", ids or [1], 9, sampling=sampling)
    return Sequence(request, list(request.prompt_ids))


def only(outputs: list[Sampled]) -> Token:
    (token,) = outputs
    assert isinstance(token, Token)
    return token


def test_greedy_takes_the_lowest_of_equal_ids_in_each_row() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [5.0, 5.0, 5.0, 5.0], [-1.0, -3.0, -2.0, -1.0]])
    outputs = Sampler().sample(logits, [sequence(SamplingParams(temperature=0))] * 3)
    assert [only(each).id for each in outputs] == [1, 0, 0]


@pytest.mark.parametrize("penalty", [0.7, 1.3, 10.0])
def test_the_repetition_penalty_is_that_of_transformers(penalty: float) -> None:
    scores = torch.randn(60, generator=torch.Generator().manual_seed(2))
    scores[5] = 0.0
    seen = [5, 3, 3, 59, 0]
    theirs = RepetitionPenaltyLogitsProcessor(penalty)(torch.tensor([seen]), scores[None].clone())
    penalize(scores, seen, penalty)
    torch.testing.assert_close(scores, theirs[0])


def test_the_penalty_covers_prompt_and_reply_and_leaves_the_logprob_alone() -> None:
    logits = torch.tensor([[4.0, 3.9, 3.8, 0.0]])
    penalized = sequence(SamplingParams(temperature=0, repetition_penalty=1.2), [0])
    penalized.ids.append(1)
    token = only(Sampler().sample(logits, [penalized])[0])
    assert token.id == 2
    assert token.logprob == pytest.approx(float(torch.log_softmax(logits[0], -1)[2]), abs=1e-6)


def test_each_row_of_drafts_is_drawn_as_if_those_before_it_had_come() -> None:
    """Alone: a sequence that has the drafts among its ids."""
    sampling = SamplingParams(temperature=2, seed=6, repetition_penalty=3.0, top_logprobs=2)
    row = torch.randn(40, generator=torch.Generator().manual_seed(8)).abs()
    ids: list[int] = [0]
    for _ in range(4):
        alone = sequence(sampling, list(ids))
        ids.append(only(Sampler().sample(row[None], [alone])[0]).id)
    assert len(set(ids)) == 5
    drafting = sequence(sampling, [0])
    drafting.drafts = ids[1:4]
    (sampled,) = Sampler().sample(row.expand(4, -1), [drafting])
    assert [each.id for each in sampled if isinstance(each, Token)] == ids[1:]


def test_every_position_of_a_seed_has_its_own_number() -> None:
    logits = torch.zeros(40, 1000)
    growing = [sequence(SamplingParams(seed=1), list(range(1, 2 + row))) for row in range(40)]
    ids = {only(outputs).id for outputs in Sampler().sample(logits, growing)}
    assert len(ids) > 30  # 39 on average of 40 from 1000


@pytest.mark.parametrize("vocab_size", [101, 49_152])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_what_is_traced_is_the_same_to_the_last_bit_alone_and_among_others(
    vocab_size: int, num_threads: int
) -> None:
    """40 rows: of `logsumexp`, which is not the same with two threads, one in twenty differs."""
    logits = torch.randn(40, vocab_size, generator=torch.Generator().manual_seed(3)) * 4
    logits[1, ::2] = -torch.inf
    greedy = SamplingParams(temperature=0, top_logprobs=8, seed=1)
    drawn = replace(greedy, temperature=0.8, top_p=0.95, repetition_penalty=1.1)
    traced = [replace(sequence(each).request, is_traced=True) for each in (greedy, drawn)]
    rows = [Sequence(traced[index % 2], [1]) for index in range(len(logits))]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(num_threads)
        together = Sampler().sample(logits, rows)
        alone = [
            Sampler().sample(each, [row]) for each, row in zip(logits[:, None], rows, strict=True)
        ]
    finally:
        torch.set_num_threads(before)
    assert together == [outputs for (outputs,) in alone]


@pytest.mark.parametrize("scale", [0.0, 3.0, 60.0])
def test_the_entropy_is_that_of_float64(scale: float) -> None:
    logits = torch.randn(1, 5_000, generator=torch.Generator().manual_seed(4)) * scale
    logits[0, ::3] = -torch.inf
    traced = replace(sequence(SamplingParams(temperature=0)).request, is_traced=True)
    choice = only(Sampler().sample(logits, [Sequence(traced, [1])])[0]).choice
    assert choice is not None
    entropy = float(torch.special.entr(logits[0].double().softmax(-1)).sum())
    assert choice.entropy == pytest.approx(entropy, rel=1e-5, abs=1e-6)


def test_logits_are_left_as_they_were() -> None:
    logits = torch.randn(2, 30, generator=torch.Generator().manual_seed(2))
    before = logits.clone()
    Sampler().sample(logits, [sequence(SamplingParams(seed=1, repetition_penalty=2.0))] * 2)
    torch.testing.assert_close(logits, before, rtol=0, atol=0)


def test_an_impossible_id_has_minus_infinity_and_harms_nobody() -> None:
    logits = torch.full((1, 300), -torch.inf)
    logits[0, 17] = 2.0
    for temperature in (0.0, 1.0):
        sampling = SamplingParams(temperature=temperature, seed=4, top_logprobs=2)
        token = only(Sampler().sample(logits, [sequence(sampling)])[0])
        assert (token.id, token.logprob) == (17, 0.0)
        assert token.top[0] == (17, 0.0)
        assert token.top[1][1] == -torch.inf


def test_no_rows_give_no_tokens() -> None:
    assert Sampler().sample(torch.empty(0, 9), []) == []


class Allowing:
    """A hook that always has the same mask."""

    def __init__(self, mask: BitMask | list[int]) -> None:
        self._mask = mask

    def mask(self) -> BitMask | list[int]:
        return self._mask

    def forced(self) -> int | None:
        return None

    def advance(self, id: int) -> None: ...

    def rollback(self, n: int) -> None: ...


def allowed(ids: set[int], num_bytes: int) -> BitMask:
    return BitMask(sum(1 << id for id in ids).to_bytes(num_bytes, "little"))


@pytest.mark.parametrize("ids", [set(), {0}, {7, 8, 30}, set(range(32))])
def test_a_mask_of_bits_says_which_ids_are_in_it(ids: set[int]) -> None:
    assert allowed(ids, 4).ids() == sorted(ids)


def sampled(logits: torch.Tensor, mask: BitMask | list[int], temperature: float) -> list[Sampled]:
    sampling = SamplingParams(temperature=temperature, seed=3)
    request = GenerationRequest("r", [1], 9, sampling=sampling, hook=Allowing(mask))
    return Sampler().sample(logits[None], [Sequence(request, [1])])[0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("num_bytes", [2, 8, 12])  # fewer bits than the model has rows, and more
def test_a_mask_of_bits_allows_what_a_list_of_the_same_ids_does(
    temperature: float, num_bytes: int
) -> None:
    logits = torch.randn(70, generator=torch.Generator().manual_seed(5))
    ids = {0, 7, 8, 15}
    bits = sampled(logits, allowed(ids, num_bytes), temperature)
    assert bits == sampled(logits, sorted(ids), temperature)
    assert only(bits).id in ids


def test_an_id_without_a_bit_is_not_allowed() -> None:
    logits = torch.arange(70.0)  # the last is the likeliest
    assert only(sampled(logits, allowed({3, 11}, 2), 0.0)).id == 11


@pytest.mark.parametrize("mask", [BitMask(bytes(9)), BitMask(b"")])
def test_a_mask_of_bits_that_allows_nothing_ends_its_request(mask: BitMask) -> None:
    (finish,) = sampled(torch.zeros(70), mask, 0.0)
    assert isinstance(finish, Finish)
    assert "the constraint allows no token" in str(finish.error)


def test_an_allowed_id_is_taken_however_unlikely_it_is() -> None:
    logits = torch.zeros(70)
    logits[9] = -torch.inf
    for mask in (allowed({9}, 9), [9]):
        assert only(sampled(logits, mask, 1.0)).id == 9


def test_of_two_masks_both_or_either_may_have_to_allow_an_id() -> None:
    short, long = allowed({1, 9, 30}, 4), allowed({9, 30, 60}, 8)
    assert short & long == allowed({9, 30}, 4)
    assert short | long == long | short == allowed({1, 9, 30, 60}, 8)
