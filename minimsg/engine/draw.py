"""From scores to an id: temperature, top-k, nucleus, and one random number.

The number of a token is a pure function of the request's seed and the token's
position, so no generator state can be lost: a token is the same alone, in a batch,
after preemption and in a replay. Knows scores; not where they come from
(`sampler.py` applies penalties and constraints first).

Temperature, then top-k, then top-p, as transformers orders them; nucleus sampling is
Holtzman et al. (arXiv 1904.09751) section 3.1. Equal scores rank by id.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor

from minimsg.engine.types import SamplingParams

NUM_CANDIDATES = 256  # a full sort of 49k scores costs 20 times as much, and is seldom needed
MIN_TEMPERATURE = 1e-30  # keeps score / temperature inside float32


def uniform(seed: int, position: int) -> float:
    """The random number in [0, 1) of the token at `position` of a sequence."""
    digest = blake2b(f"{seed} {position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) * 2.0**-53


def rank(scores: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The `width` highest of scores `(R, V)` and their ids, best first, equal ones by id.

    Which of the scores equal to the last one are in it, is left open.
    """
    if width == scores.shape[-1]:
        return torch.sort(scores, dim=-1, descending=True, stable=True)
    _, ids = scores.topk(width, dim=-1, sorted=False)
    ids, _ = ids.sort(dim=-1)
    values, order = torch.sort(scores.gather(-1, ids), dim=-1, descending=True, stable=True)
    return values, ids.gather(-1, order)


def draw(scores: Tensor, params: list[SamplingParams], numbers: list[float]) -> list[int]:
    """One id for each row of scores `(R, V)` float32, by inverse CDF at `numbers` (R).

    Tries with the best candidates and sorts the whole vocabulary only for the rows where
    they do not settle it; the id is the same either way.
    """
    num_ids = scores.shape[-1]
    cuts = [p.top_k for p in params if p.top_k < num_ids]
    width = min(num_ids, max([NUM_CANDIDATES, *(cut + 1 for cut in cuts)]))
    ids, settled = _draw_among(scores, params, numbers, width)
    for row in [row for row, is_settled in enumerate(settled) if not is_settled]:
        again, _ = _draw_among(scores[row, None], [params[row]], [numbers[row]], num_ids)
        ids[row] = again[0]
    return ids


@dataclass(frozen=True)
class _Knobs:
    """Sampling parameters as columns `(R, 1)`."""

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    number: Tensor

    @classmethod
    def of(cls, params: list[SamplingParams], numbers: list[float], num_ids: int) -> _Knobs:
        rows = [
            (max(p.temperature, MIN_TEMPERATURE), min(p.top_k or num_ids, num_ids), p.top_p, number)
            for p, number in zip(params, numbers, strict=True)
        ]
        return cls(*torch.tensor(rows, dtype=torch.float64).chunk(4, dim=-1))


def _draw_among(
    scores: Tensor, params: list[SamplingParams], numbers: list[float], width: int
) -> tuple[list[int], list[bool]]:
    """Ids drawn from the `width` best of each row, and whether these were enough to tell."""
    num_ids = scores.shape[-1]
    knobs = _Knobs.of(params, numbers, num_ids)
    values, ids = rank(scores, width)
    cold = knobs.temperature.to(scores.device, scores.dtype)
    mass = torch.exp((scores - values[:, :1]) / cold).sum(-1, keepdim=True)  # of all ids
    values, ids, mass = values.cpu().double(), ids.cpu(), mass.cpu().double()

    weights = torch.exp((values - values[:, :1]) / knobs.temperature)  # the best one weighs 1
    weights[torch.arange(width) >= knobs.top_k] = 0
    mass = torch.where(knobs.top_k < num_ids, weights.sum(-1, keepdim=True), mass)
    cumulative = weights.cumsum(-1)
    kept = (cumulative - weights < knobs.top_p * mass) & (weights > 0)
    kept[:, 0] = True  # top_p 0 leaves the likeliest
    num_kept = kept.sum(-1, keepdim=True)
    is_cut = (knobs.top_k < num_ids) | (knobs.top_p < 1)
    goal = knobs.number * torch.where(is_cut, cumulative.gather(-1, num_kept - 1), mass)
    index = (cumulative <= goal).sum(-1, keepdim=True)

    num_certain = (values > values[:, -1:]).sum(-1, keepdim=True) if width < num_ids else width
    settled = torch.where(is_cut, num_kept, index + 1) <= num_certain
    chosen = ids.gather(-1, torch.minimum(index, num_kept - 1))
    return chosen.flatten().tolist(), settled.flatten().tolist()
