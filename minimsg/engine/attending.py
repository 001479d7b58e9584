"""What a request's tokens looked at: the share of attention that each paid to its passages.

A request names spans of its prompt (`GenerationRequest.passages`); each of its tokens then
says, for each span, what the row that it was drawn from paid to it (`Token.attended`): the
mean of all heads of some layers. These look at `hook_pattern` (`watching.py`), so every step
with such a request runs layer by layer. A model without points tells nothing.

Knows rows of attention, not what the spans are: `minimsg/citing/`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.engine.types import GenerationRequest, Watched
from minimsg.engine.watching import Function, Place
from minimsg.models.points import layer_of, point

# Of the layers, as shares of their number: of smollm2 17 to 24, whose heads together find the
# sentence that is being repeated most often; those before 14 look at the prompt's beginning.
FIRST: Final = 0.57
LAST: Final = 0.8


def with_attention(
    watched: Watched | None, request: GenerationRequest, points: Collection[str]
) -> Watched | None:
    """`watched`, and what tells what the tokens of `request` look at, if it has passages."""
    names = _points(points)
    if not request.passages or not names:
        return watched
    attending = _Attending(request)
    others = dict(watched.functions) if watched else {}
    functions = {name: _both(attending.look, others.get(name)) for name in names}
    first = len(request.prompt_ids) - 1
    before = watched or Watched({}, first)
    return replace(
        before,
        functions={**others, **functions},
        first=min(before.first, first),
        attended=attending.shares,
    )


def _points(there: Collection[str]) -> list[str]:
    """Attention in the chosen layers."""
    num_layers = 1 + max((layer_of(name) or 0 for name in there), default=-1)
    chosen = range(int(num_layers * FIRST), int(num_layers * LAST) + 1)
    names = [point(layer, "attn.hook_pattern") for layer in chosen]
    return [name for name in names if name in there]


def _both(look: Function, other: object) -> Function:
    if not callable(other):
        return look

    def both(values: Tensor, place: Place) -> None:
        look(values, place)
        other(values, place)

    return both


class _Attending:
    """What the latest row of one request pays to its passages."""

    def __init__(self, request: GenerationRequest) -> None:
        starts, stops = zip(*request.passages, strict=True)
        self._starts, self._stops = torch.tensor(starts), torch.tensor(stops)
        self._paid: dict[str, Tensor] = {}  # (N,) by point

    def look(self, pattern: Tensor, place: Place) -> None:
        """Take what rows `(n, Hq, keys)` pay at a point; a token is drawn from the last."""
        paid = F.pad(pattern[-1].mean(dim=0).cpu().cumsum(dim=0), (1, 0))
        self._paid[place.point] = paid[self._stops] - paid[self._starts]

    def shares(self) -> tuple[float, ...]:
        """For each passage the mean of the points."""
        shares: list[float] = torch.stack(list(self._paid.values())).mean(dim=0).tolist()
        return tuple(shares)
