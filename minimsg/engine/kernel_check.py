"""The reference beside the kernel that runs: on a share of the steps, layer by layer.

Of a step that is checked, the layers run one by one. What a layer's attention gets, the
heads from the projection on, is normalized and rotated once more in plain torch and
attended by `kernels/reference.py`, over a copy of the pages that the step reads; then both
results are compared. What the kernel gave goes on, so replies stay as they are, and the
steps between have no cost. Products of linear layers are not computed twice: their plain
weights are gone where a kernel has taken them over. In deterministic mode, with the kernel
`tiled`, a step is as many steps as it has tiles. Knows one step at a time; what is counted
is read by `server/metrics.py`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from minimsg.engine.differences import largest_difference
from minimsg.errors import ConfigError
from minimsg.kernels import reference
from minimsg.kernels.contract import Layout, Pages
from minimsg.models.contract import Attended, WatchedModel

logger = logging.getLogger("minimsg")

PROJECTED: Final = ("attn.hook_q", "attn.hook_k", "attn.hook_v")


@dataclass(frozen=True, slots=True)
class CheckedStep:
    """The errors of a step: of each layer the largest, of the largest value there."""

    errors: tuple[float, ...]  # (layers,)

    @property
    def largest(self) -> float:
        """Of all layers."""
        return max(self.errors)


class KernelCheck:
    """Decides which steps are checked, and keeps what came of it."""

    def __init__(self, model: object, share: float) -> None:
        """`share` of the steps, evenly. Raises ConfigError for a model without layers."""
        if not isinstance(model, WatchedModel):
            raise ConfigError("check_kernels: the model has no layers that a kernel computes")
        self.num_layers = len(model.cache_specs)
        self.num_steps = 0  # that were checked
        self.worst = [0.0] * self.num_layers  # of all of them
        self.latest: CheckedStep | None = None
        self._share, self._due = share, 0.0

    def watch(self) -> CheckingWatch | None:
        """Who looks at the next step, if it is to be checked."""
        self._due += self._share
        if self._due < 1:
            return None
        self._due -= 1
        return CheckingWatch(self)

    def note(self, step: CheckedStep) -> None:
        """A step was checked."""
        self.latest = step
        self.worst = [max(pair) for pair in zip(self.worst, step.errors, strict=True)]
        self.num_steps += 1


class CheckingWatch:
    """Looks at the attention of one step (`Watch`). Changes nothing."""

    def __init__(self, check: KernelCheck) -> None:
        self._check = check
        self._heads: list[Tensor] = []  # queries, keys, values of a layer as they were projected
        self._errors: list[float] = []

    def wants(self, point: str) -> bool:
        return False

    def visit(self, point: str, values: Tensor) -> list[slice]:
        if point.endswith(PROJECTED):
            self._heads.append(values.clone())
        return []

    def attended(self, attended: Attended) -> None:
        heads, self._heads = self._heads, []
        try:
            error = _error(attended, _expected(attended, torch.cat(heads, dim=1)))
        except Exception:  # a check that fails is nothing to the requests that are checked
            logger.exception("layer %d could not be checked", attended.layer)
            return
        self._errors.append(error)
        if len(self._errors) == self._check.num_layers:
            self._check.note(CheckedStep(tuple(self._errors)))


def _expected(attended: Attended, heads: Tensor) -> Tensor:
    """(T, Hq, D) what the reference makes of heads `(T, Hq + 2 Hkv, D)`."""
    rotated, value = attended.rotated(heads)
    num_heads = attended.query.shape[1]
    pages, layout = _copied(attended.pages, attended.layout)
    key, value = (each.to(pages.key.dtype) for each in (rotated[:, num_heads:], value))
    return reference.Backend().attention(
        rotated[:, :num_heads], key, value, pages, layout,
        scale=attended.scale, window=attended.window,
    )  # fmt: skip


def _copied(pages: Pages, layout: Layout) -> tuple[Pages, Layout]:
    """The pages that a step reads or writes, copied, and where things lie in them."""
    page_size = pages.key.shape[1]
    tables, written = layout.page_tables, layout.slots // page_size
    numbers = torch.unique(torch.cat((tables.flatten(), written)))
    places, moved = torch.searchsorted(numbers, tables), torch.searchsorted(numbers, written)
    slots = moved * page_size + layout.slots % page_size
    copied = Pages(pages.key[numbers], pages.value[numbers])
    return copied, Layout(layout.query_starts, layout.context_lens, places, slots)


def _error(attended: Attended, expected: Tensor) -> float:
    """The largest difference of the rows that are somebody's, of the largest value there."""
    starts = attended.layout.query_starts
    rows = slice(starts[0], starts[-1])
    return largest_difference(attended.output[rows], expected[rows])[1]
