"""What a model takes and gives, whatever its family.

A model is an `nn.Module` whose `forward(inputs, cache)` returns logits. It declares
what each layer caches and gets that memory passed in; it keeps no state of its own
between calls, so two engines can share one model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Inputs:
    """One step's tensors. T new tokens of all sequences, S rows whose logits are wanted."""

    ids: Tensor  # (T,) int64
    positions: Tensor  # (T,) int64
    sample_rows: Tensor  # (S,) int64
    layout: Layout
    axes: Tensor | None = None  # (3, T) int64: rotary positions, where any differ from `positions`
    sight: Sight | None = None  # if any row is of a picture


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
