"""What a model takes and gives, whatever its family.

A model is an `nn.Module` whose `forward(inputs, cache)` returns logits. It declares
what each layer caches and gets that memory passed in; it keeps no state of its own
between calls, so two engines can share one model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from minimsg.kernels.contract import Layout, Pages


@dataclass(frozen=True)
class PagedSpec:
    """A layer that caches keys and values in pages."""

    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class Sight:
    """What R of the T rows stand for: parts of pictures, as the tower saw them."""

    rows: Tensor  # (R,) int64
    features: Tensor  # (1 + levels, R, hidden): the embeddings, and what each first layer adds


@dataclass(frozen=True)
class Attended:
    """What a layer's attention has just done: its queries as they were rotated, and its output."""

    layer: int
    query: Tensor  # (T, Hq, D)
    output: Tensor  # (T, Hq, D)
    pages: Pages  # the new keys and values are in them
    layout: Layout
    scale: float
    window: int | None
    rotated: Callable[[Tensor], tuple[Tensor, Tensor]]  # `Attention.rotated` of heads as projected


class Watch(Protocol):
    """Who looks at the points of a step (`points.py`), and may change rows there."""

    def wants(self, point: str) -> bool:
        """Whether anybody looks there: what is computed only to be seen need not be, else."""

    def visit(self, point: str, values: Tensor) -> list[slice]:
        """Show the values of all rows, `(T, ...)`; the rows that were changed, in place."""

    def attended(self, attended: Attended) -> None:
        """Show a layer's attention."""


@runtime_checkable
class WatchedModel(Protocol):
    """A model that has named points, and visits them for the watch of its inputs."""

    points: tuple[str, ...]
    cache_specs: Sequence[PagedSpec]

    def logits(self, residual: Tensor) -> Tensor:
        """(S, V) float32 of rows `(S, hidden)` of the residual stream, behind whatever layer."""


@dataclass(frozen=True)
class Inputs:
    """One step's tensors. T new tokens of all sequences, S rows whose logits are wanted."""

    ids: Tensor  # (T,) int64
    positions: Tensor  # (T,) int64
    sample_rows: Tensor  # (S,) int64
    layout: Layout
    axes: Tensor | None = None  # (3, T) int64: rotary positions, where any differ from `positions`
    sight: Sight | None = None  # if any row is of a picture
    watch: Watch | None = None  # if anybody looks: then the layers run one by one


class Model(Protocol):
    """A causal language model over a paged cache."""

    vocab_size: int
    cache_specs: Sequence[PagedSpec]  # one a layer

    def __call__(self, inputs: Inputs, cache: Sequence[Pages]) -> Tensor:
        """Logits `(S, V)` float32 of `sample_rows`; `cache`, one entry a layer, is mutated."""

    def checkpoint_tensors(self) -> Mapping[str, Tensor]:
        """Each tensor of a checkpoint by its name there, as the part of a weight it fills."""


@runtime_checkable
class SeeingModel(Protocol):
    """A model that reads pictures, too."""

    def see(self, pixels: bytes, rows: int, columns: int) -> Tensor:
        """A picture of `rows * columns` tokens as `(1 + levels, rows * columns, hidden)`.

        `pixels`: red, green and blue bytes, scaled to what so many tokens stand for.
        """
