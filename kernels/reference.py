"""The specification: paged attention as plain float32 softmax, one sequence at a time.

Slow and obvious, runs on any device. Every other backend is tested against it
(`tests/kernels/test_contract.py`); it is itself tested against float64 arithmetic.
Softmax attention: Vaswani et al., arXiv 1706.03762 section 3.2.1; grouped heads:
arXiv 2305.13245 section 2.2; sliding window: arXiv 2310.06825 section 2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages


class Backend:
    """Attention over paged keys and values, to be read rather than to be fast."""

    name = "reference"
    is_batch_invariant = False

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        return None if dtype.is_floating_point else f"{dtype} is not a floating-point format"

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
        num_kv_heads, head_dim = key.shape[1:]
        keys = pages.key.view(-1, num_kv_heads, head_dim)  # (slots, Hkv, D)
        values = pages.value.view(-1, num_kv_heads, head_dim)
        keys[layout.slots] = key
        values[layout.slots] = value

        output = torch.empty_like(query)
        for sequence, context in enumerate(layout.context_lens):
            rows = slice(layout.query_starts[sequence], layout.query_starts[sequence + 1])
            slots = _slots(layout.page_tables[sequence], page_size=pages.key.shape[1])[:context]
            output[rows] = _attend(query[rows], keys[slots], values[slots], scale, window)
        return output


def pattern(
    query: Tensor,
    pages: Pages,
    page_table: Tensor,
    context: int,
    *,
    scale: float,
    window: int | None = None,
) -> Tensor:
    """What the last tokens of a sequence pay to each before them, and to themselves.

    query `(t, Hq, D)`, rotated; keys are read from the pages `(P,)`. `(t, Hq, context)`
    float32: rows of 1 in sum, 0 where nothing can be seen.
    """
    num_kv_heads, head_dim = pages.key.shape[2:]
    slots = _slots(page_table, page_size=pages.key.shape[1])[:context]
    keys = pages.key.view(-1, num_kv_heads, head_dim)[slots].float()
    grouped = query.float().reshape(len(query), num_kv_heads, -1, head_dim)  # keys stay single
    scores = torch.einsum("tkgd,ckd->tkgc", grouped, keys).flatten(1, 2) * scale
    visible = _visible(len(query), context, window, query.device)
    return scores.masked_fill(~visible[:, None], -torch.inf).softmax(dim=-1)


def _slots(page_table: Tensor, *, page_size: int) -> Tensor:
    """Every slot of the pages `(P,)`, in the order of the sequence: `(P * page_size,)`."""
    offsets = torch.arange(page_size, device=page_table.device)
    return (page_table[:, None] * page_size + offsets).flatten()


def _attend(query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
    """One sequence: its new tokens `(t, Hq, D)` over its whole context `(c, Hkv, D)`."""
    group = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(group, dim=1).float()  # (c, Hq, D)
    value = value.repeat_interleave(group, dim=1).float()

    scores = torch.einsum("thd,chd->htc", query.float(), key) * scale
    visible = _visible(len(query), len(key), window, query.device)
    weights = scores.masked_fill(~visible, -torch.inf).softmax(dim=-1)
    return torch.einsum("htc,chd->thd", weights, value).to(query.dtype)


def _visible(num_new: int, context: int, window: int | None, device: torch.device) -> Tensor:
    """Which of `context` tokens each of the last `num_new` may see: `(t, c)` bool."""
    seen = torch.arange(context, device=device)
    seer = seen[context - num_new :, None]
    causal = seen <= seer
    return causal if window is None else causal & (seen > seer - window)
