"""From scores to an id: temperature, top-k, nucleus, and one random number.

The number of a token is a pure function of the request's seed and the token's
position, so no generator state can be lost: a token is the same alone, in a batch,
after preemption and in a replay. Knows scores; not where they come from
(`sampler.py` applies penalties and constraints first).

Temperature, then top-k, then top-p, as transformers orders them; nucleus sampling is
Holtzman et al. (arXiv 1904.09751) section 3.1. Equal scores rank by id.
"""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import Tensor

from minimsg.engine.types import SamplingParams

NUM_CANDIDATES = 256  # a full sort of 49k scores costs 20 times as much, and is seldom needed
MIN_TEMPERATURE = 1e-30  # keeps score / temperature inside float32
FOLD = 16  # scores; of so many only the maximum is ranked at first
LINE = 128  # scores, whose maximum is found ten times as fast as its place


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
    ids, _ = _highest(scores, width).sort(dim=-1)
    values, order = torch.sort(scores.gather(-1, ids), dim=-1, descending=True, stable=True)
    return values, ids.gather(-1, order)


def argmax(scores: Tensor) -> Tensor:
    """(R,) the id of the highest of scores `(R, V)`, the lowest one on ties.

    It is in the first line with the highest maximum.
    """
    num_lines, rest = divmod(scores.shape[-1], LINE)
    if rest:
        return scores.argmax(dim=-1)
    lines = scores.reshape(-1, num_lines, LINE)
    rows, line = torch.arange(len(scores), device=scores.device), lines.amax(-1).argmax(-1)
    return line * LINE + lines[rows, line].argmax(-1)


def draw(scores: Tensor, params: list[SamplingParams], numbers: list[float]) -> list[int]:
    """One id for each row of scores `(R, V)` float32, by inverse CDF at `numbers` (R).

    Looks at the best candidates, and at ever more of them for the rows where they do not
    settle it; the id is the same however many it takes.
    """
    num_ids = scores.shape[-1]
    cuts = [min(each.top_k or num_ids, num_ids) for each in params]
    width = min(num_ids, max([NUM_CANDIDATES, *(cut + 1 for cut in cuts if cut < num_ids)]))
    knobs = torch.tensor(
        [
            (max(each.temperature, MIN_TEMPERATURE), cut, each.top_p, number)
            for each, cut, number in zip(params, cuts, numbers, strict=True)
        ],
        dtype=torch.float64,
    )
    ids, settled = _draw_among(scores, knobs, width)
    while not settled.all():
        width = min(num_ids, 16 * width)
        rows = (~settled).nonzero()[:, 0]
        ids[rows], settled[rows] = _draw_among(scores[rows.to(scores.device)], knobs[rows], width)
    return [int(id) for id in ids]


def _highest(scores: Tensor, width: int) -> Tensor:
    """The ids `(R, width)` of the highest of scores `(R, V)`, in any order.

    Folded to a few rows, they are in the `width` columns with the highest maxima.
    """
    num_columns, rest = divmod(scores.shape[-1], FOLD)
    if rest or num_columns <= width:
        return scores.topk(width, dim=-1, sorted=False).indices
    maxima = scores.reshape(-1, FOLD, num_columns).amax(1)
    columns = maxima.topk(width, dim=-1, sorted=False).indices
    starts = torch.arange(FOLD, device=scores.device)[:, None] * num_columns
    ids = (starts + columns[:, None]).flatten(1)
    return ids.gather(-1, scores.gather(-1, ids).topk(width, dim=-1, sorted=False).indices)


def _totals(rows: Tensor) -> Tensor:
    """Sums `(R, 1)` of `(R, V)`, in float64 on the CPU.

    Lines are summed first, each by itself, so to the same bit however many rows there are.
    """
    num_lines = rows.shape[-1] // LINE
    whole, rest = rows.tensor_split([num_lines * LINE], dim=-1)
    sums = whole.reshape(-1, num_lines, LINE).sum(-1) if num_lines else whole
    return torch.cat((sums, rest), dim=-1).cpu().double().sum(-1, keepdim=True)


def _draw_among(scores: Tensor, knobs: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Ids `(R,)` drawn from the `width` best of each row, and whether these were enough to tell.

    `knobs` `(R, 4)` float64: temperature, top-k, top-p, random number. The candidates are
    enough if what is kept, or the id drawn, ranks above the last of them, of whose equals
    some may be missing.
    """
    num_ids = scores.shape[-1]
    temperature, top_k, top_p, number = knobs.chunk(4, dim=-1)
    values, ids = rank(scores, width)
    cold = (scores - values[:, :1]).div_(temperature.to(scores))
    shares = cold.softmax(-1)  # unlike a sum, the same however many rows; but not quite of 1
    mass = _totals(shares) / shares.amax(-1, keepdim=True).cpu()  # where the best one weighs 1
    values, ids = values.cpu().double(), ids.cpu()

    weights = torch.exp((values - values[:, :1]) / temperature)
    weights[torch.arange(width) >= top_k] = 0
    mass = torch.where(top_k < num_ids, weights.sum(-1, keepdim=True), mass)
    cumulative = weights.cumsum(-1)
    kept = (cumulative - weights < top_p * mass) & (weights > 0)
    kept[:, 0] = True  # top-p 0 leaves the likeliest
    num_kept = kept.sum(-1, keepdim=True)

    is_cut = (top_k < num_ids) | (top_p < 1)
    goal = number * torch.where(is_cut, cumulative.gather(-1, num_kept - 1), mass)
    index = (cumulative <= goal).sum(-1, keepdim=True)
    needed = torch.where(is_cut, num_kept, index + 1)
    settled = (needed <= (values > values[:, -1:]).sum(-1, keepdim=True)) | (width == num_ids)
    chosen = ids.gather(-1, torch.minimum(index, num_kept - 1))
    return chosen[:, 0], settled[:, 0]
