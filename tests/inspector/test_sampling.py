"""The bench draws what the engine draws: sampling.js against engine/draw.py."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from minimsg.engine.draw import draw, rank
from minimsg.engine.types import SamplingParams
from minimsg.inspector.lens import groups

from .node import ask

NUMBERS = [0.0, 0.1, 0.31, 0.5, 0.77, 0.9, 0.999]
KNOBS = [
    {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    for temperature, top_k, top_p in itertools.product(
        (0, 0.05, 0.7, 1.0, 1.9), (0, 1, 7, 64), (0.0, 0.3, 0.9, 1.0)
    )
]
WRITTEN = """
import { distribution, pick } from "./sampling.js";
export const picks = (choice, knobs, numbers) => {
  const outcome = distribution(choice, knobs);
  return numbers.map((number) => pick(outcome, number));
};
"""


def choice_of(logits: torch.Tensor, width: int) -> dict[str, object]:
    """The `width` likeliest of logits `(V,)` and groups of all others, as the page gets them."""
    logprobs = torch.log_softmax(logits, dim=-1)
    values, ids = rank(logprobs[None], width)
    top = [[id, "", value] for id, value in zip(ids[0].tolist(), values[0].tolist(), strict=True)]
    return {"top": top, "rest": groups(logprobs.sort(descending=True).values[width:])}


def test_the_bench_picks_the_tokens_that_the_sampler_draws(tmp_path: Path) -> None:
    logits = torch.randn(64, generator=torch.Generator().manual_seed(5)) * 2
    logits[9] = logits[40]  # equal ones go by id
    choice = choice_of(logits, 64)
    (tmp_path / "written.js").write_text(WRITTEN)
    asked = [[choice, knobs, NUMBERS] for knobs in KNOBS]
    answers = ask(tmp_path, "written.js", "picks", asked)
    logprobs = torch.log_softmax(logits, dim=-1)
    ids = [row[0] for row in choice["top"]]  # type: ignore[attr-defined]
    for knobs, places in zip(KNOBS, answers, strict=True):
        params = SamplingParams(
            temperature=float(knobs["temperature"]),
            top_k=int(knobs["top_k"]),
            top_p=float(knobs["top_p"]),
        )
        if params.temperature == 0:  # the sampler takes the argmax, and asks for no number
            expected = [int(logprobs.argmax())] * len(NUMBERS)
        else:
            expected = draw(logprobs.repeat(len(NUMBERS), 1), [params] * len(NUMBERS), NUMBERS)
        assert [ids[place] for place in places] == expected, knobs


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_shares_are_those_of_all_ids_though_most_come_in_groups(
    tmp_path: Path, temperature: float
) -> None:
    logits = torch.randn(5_000, generator=torch.Generator().manual_seed(6)) * 3
    knobs = {"temperature": temperature, "top_k": 0, "top_p": 1.0}
    (outcome,) = ask(tmp_path, "sampling.js", "distribution", [[choice_of(logits, 256), knobs]])
    expected = torch.softmax(logits.double() / temperature, dim=-1)
    shares = torch.tensor([row["share"] for row in outcome["rows"]], dtype=torch.float64)
    assert torch.allclose(shares, expected.sort(descending=True).values[:256], rtol=0.01)
    assert outcome["rest"] == pytest.approx(1 - float(shares.sum()), abs=1e-6)


def test_groups_hold_every_id_once_and_their_mass_is_exact() -> None:
    logprobs = torch.log_softmax(torch.randn(3_000), dim=-1).sort(descending=True).values[256:]
    found = groups(logprobs)
    assert sum(count for count, _ in found) == len(logprobs)
    mass = sum(count * float(torch.tensor(logprob).double().exp()) for count, logprob in found)
    assert mass == pytest.approx(float(logprobs.double().exp().sum()), rel=1e-4)
    assert groups(logprobs[:0]) == []
