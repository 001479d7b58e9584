"""The reference beside the kernel that runs: on a share of the steps, layer by layer.

Of a step that is checked, the layers run one by one. What a layer's attention gets, the
heads from the projection on, is normalized and rotated once more in plain torch and
attended by `kernels/reference.py`, over a copy of the pages that the step reads; then both
results are compared. What the kernel gave goes on, so replies stay as they are, and the
steps between have no cost. Products of linear layers are not computed twice: their plain
weights are gone where a kernel has taken them over. In deterministic mode, with the kernel
`tiled`, a step is run in tiles, and all of them are checked. Knows one step at a time; what
came of it is in `/metrics`, in records and on the page.
"""

from __future__ import annotations

import logging
from typing import Final

import torch
from torch import Tensor

from minimsg.engine.differences import largest_difference
from minimsg.engine.types import Checks
from minimsg.errors import ConfigError
from minimsg.kernels import reference
from minimsg.kernels.contract import Layout, Pages
from minimsg.models.contract import Attended, WatchedModel

logger = logging.getLogger("minimsg")

PROJECTED: Final = ("attn.hook_q", "attn.hook_k", "attn.hook_v")


class KernelCheck:
    """Decides which steps are checked, and keeps what came of it."""

    def __init__(self, model: object, share: float) -> None:
        """`share` of the steps, evenly. Raises ConfigError for a model without layers."""
        if not isinstance(model, WatchedModel):
            raise ConfigError("check_kernels: the model has no layers that a kernel computes")
        self.num_layers = len(model.cache_specs)
        self.checks: Checks | None = None  # of all steps so far
        self._share, self._due = share, 0.0
        self._is_due = self._is_noted = False  # in the step that runs

    def begin(self) -> None:
        """A step begins, of one run or several."""
        self._due += self._share
        self._is_due, self._is_noted = self._due >= 1, False
        self._due -= self._is_due

    def watch(self) -> CheckingWatch | None:
        """Who looks at a run of the step, if it is to be checked."""
        return CheckingWatch(self) if self._is_due else None

    def note(self, errors: tuple[float, ...]) -> None:
        """A run was checked: of each layer the largest error, of the largest value there."""
        told = self.checks or Checks(0, (), ())
        latest = _largest(told.latest, errors) if self._is_noted else errors
        num_steps = told.num_steps + (not self._is_noted)
        self.checks = Checks(num_steps, latest, _largest(told.worst, errors))
        self._is_noted = True

    def step_errors(self) -> tuple[float, ...] | None:
        """Those of the latest step, if it was checked."""
        return self.checks.latest if self.checks is not None and self._is_noted else None


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
            self._check.note(tuple(self._errors))


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


def _largest(some: tuple[float, ...], others: tuple[float, ...]) -> tuple[float, ...]:
    """Layer by layer; of no errors and some, those."""
    return tuple(map(max, some, others)) if some else others


def _error(attended: Attended, expected: Tensor) -> float:
    """The largest difference of the rows that are somebody's, of the largest value there."""
    starts = attended.layout.query_starts
    rows = slice(starts[0], starts[-1])
    return largest_difference(attended.output[rows], expected[rows])[1]
