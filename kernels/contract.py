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
from typing import Protocol

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
