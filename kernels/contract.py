"""What a kernel backend must do: the interface, its tensors, and how one is checked.

Knows tensors only: no model, no scheduler, no request. `reference.py` beside it is
the specification; every other backend passes `tests/kernels/test_contract.py`
against it. To add one see `README.md`.

Paged layout (vLLM, arXiv 2309.06180 section 4): the keys of a layer are
`(num_pages, page_size, Hkv, D)`; a token's slot is `page * page_size + offset`; a
sequence's page table lists its pages in order. A backend first stores the new keys
and values, then attends from the pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Where the tokens of one step lie. Host lists and device tensors of the same facts.

    Sequence b owns rows `query_starts[b] : query_starts[b + 1]` of the T new tokens;
    they are the last of its `context_lens[b]` tokens. Rows before the first and after the
    last sequence are padding (`engine/tiles.py`): stored in their slots, their output is open.
    """

    query_starts: list[int]  # (B + 1,)
    context_lens: list[int]  # (B,)
    page_tables: Tensor  # (B, P) int64, rows padded with 0
    slots: Tensor  # (T,) int64


@dataclass(frozen=True)
class Pages:
    """The keys and values of one layer, `(num_pages, page_size, Hkv, D)` each."""

    key: Tensor
    value: Tensor


class Backend(Protocol):
    """Attention over paged keys and values."""

    name: str
    is_batch_invariant: bool  # a token's bits are the same alone, in any batch and any chunk

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        """Why this backend cannot run there, in words for a log line; None if it can."""

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        pages: Pages,
        layout: Layout,
        *,
        scale: float,
        window: int | None = None,
    ) -> Tensor:
        """Store `key`, `value` in their slots, then attend causally.

        query `(T, Hq, D)`; key, value `(T, Hkv, D)`, Hq a multiple of Hkv (query head h
        reads kv head `h // (Hq // Hkv)`); returns `(T, Hq, D)` in query's dtype. `pages`
        is mutated at `layout.slots`. With `window` w, a token sees itself and the w - 1
        tokens before it. Slots beyond a context length are never read into the result,
        whatever they hold (NaN included).
        """


@dataclass(frozen=True)
class Formats:
    """The number formats of a model that a backend runs."""

    weights: torch.dtype  # float32, bfloat16 ..., or int8 with scales, as are then their inputs
    activations: torch.dtype  # of everything between them, norms and biases
    cache: torch.dtype


class Norm(Protocol):
    """`x / rms(x) * weight` (arXiv 1910.07467), over the last axis."""

    @property
    def weight(self) -> Tensor: ...
    @property
    def epsilon(self) -> float: ...


class HeadNorm(Protocol):
    """The norms of query and key heads; the weights are `(D,)` each."""

    @property
    def query_weight(self) -> Tensor: ...
    @property
    def key_weight(self) -> Tensor: ...
    @property
    def epsilon(self) -> float: ...


@dataclass(frozen=True)
class Rotation:
    """Cosine and sine of a step's angles, `(T, 1, D)` each; the sine's first half is negated."""

    cos: Tensor
    sin: Tensor

    def rotate(self, heads: Tensor) -> Tensor:
        """Turn each pair (i, i + D / 2) of `(T, heads, D)` by its angle (arXiv 2104.09864)."""
        half = heads.shape[-1] // 2
        return torch.addcmul(heads * self.cos, heads.roll(half, -1), self.sin)


@runtime_checkable
class LinearOperator(Protocol):
    """What a backend may offer beyond attention: products with weights in an order of its own.

    The reference form is `Linear.forward` in `models/layers.py`. Tensors are contiguous, and
    activations in the format that `formats` says.
    """

    order: str  # names what `pack` does: packed weights that are kept are of one order

    def formats(self, dtype: torch.dtype) -> Formats:
        """The formats of a model whose weights are asked for in `dtype`."""

    def pack(self, weight: Tensor, dtype: torch.dtype, *, is_gated: bool) -> Tensor:
        """`weight` `(N, K)` in `dtype` and in the backend's order; a tensor that can be stored."""

    def packed_shape(self, shape: torch.Size, *, is_gated: bool) -> torch.Size:
        """The shape of a weight `(N, K)` that was packed as int8; uint8."""

    def matrix(
        self, packed: Tensor, bias: Tensor | None, shape: torch.Size, *, is_gated: bool
    ) -> Any:
        """What `linear` takes: a packed weight that had `shape` `(N, K)`, with its bias `(N,)`."""

    def linear(self, x: Tensor, matrix: Any, norm: Norm | None, add_to: Tensor | None) -> Tensor:
        """`(T, K)` to `(T, N)`: `norm(x) W^T + b`.

        If the matrix is gated, `silu(first half) * second half` of that, `(T, N / 2)`. With
        `add_to` the result is added to it in place, and it is returned.
        """


@runtime_checkable
class HeadsOperator(Protocol):
    """What a backend may offer beyond attention: the heads of a layer from the projection on.

    The reference form is `Attention.attend` in `models/layers.py`.
    """

    def attend_heads(
        self,
        heads: Tensor,
        head_norm: HeadNorm | None,
        rotation: Rotation,
        pages: Pages,
        layout: Layout,
        *,
        num_heads: int,
        scale: float,
        window: int | None,
    ) -> Tensor:
        """`attention` of heads `(T, Hq + 2 Hkv, D)`: queries and keys normalized and rotated.

        Returns `(T, Hq, D)`; queries and keys in `heads` are then those that were attended.
        """


@dataclass(frozen=True)
class LayerParts:
    """A decoder layer, `DecoderLayer` of `models/layers.py`, for an operator that takes all."""

    attention_norm: Norm
    input: Any  # of q, k and v; each product is what `matrix` made of it
    head_norm: HeadNorm | None
    output: Any
    mlp_norm: Norm
    gate_up: Any
    down: Any
    pages: Pages
    num_heads: int
    scale: float
    window: int | None


@runtime_checkable
class LayersOperator(LinearOperator, HeadsOperator, Protocol):
    """What a backend may offer beyond attention: all layers of a decoder in one call.

    The reference form is the loop in `Decoder.run_layers`, with the other two operators.
    """

    def join(self, layers: list[LayerParts]) -> Any:
        """What `run_layers` takes."""

    def run_layers(self, x: Tensor, joined: Any, rotation: Rotation, layout: Layout) -> None:
        """Add every layer to `x` `(T, hidden)` in place; keys and values go into their pages."""


def formats_of(backend: Backend, dtype: torch.dtype) -> Formats:
    """The formats of a model under `backend`: one for all unless it says otherwise."""
    if isinstance(backend, LinearOperator):
        return backend.formats(dtype)
    return Formats(dtype, dtype, dtype)
