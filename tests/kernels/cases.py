"""Batches for kernel tests, with the answer worked out in float64 without any pages.

`Case` says what a step holds; `build` draws the tensors and lays each sequence's
history out in shuffled pages; every slot that no token owns holds NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages

PAGE_SIZE = 16


@dataclass(frozen=True)
class Case:
    """A step: for each sequence its context length and how many of its tokens are new."""

    contexts: tuple[int, ...]
    new: tuple[int, ...]
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 16
    window: int | None = None

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.head_dim)


@dataclass(frozen=True)
class Step:
    """The arguments of one `attention` call, and what it must return."""

    query: Tensor
    key: Tensor
    value: Tensor
    pages: Pages
    layout: Layout
    expected: Tensor  # (T, Hq, D) float64


def build(case: Case, dtype: torch.dtype, seed: int = 0) -> Step:
    random = torch.Generator().manual_seed(seed)
    tables = _page_tables(case.contexts, random)
    queries, keys, values, slots, expected = [], [], [], [], []
    shape = (int(tables.max()) + 2, PAGE_SIZE, case.num_kv_heads, case.head_dim)
    pages = Pages(
        torch.full(shape, torch.nan, dtype=dtype), torch.full(shape, torch.nan, dtype=dtype)
    )
    for context, new, table in zip(case.contexts, case.new, tables, strict=True):
        query = torch.randn(new, case.num_heads, case.head_dim, generator=random).to(dtype)
        key = torch.randn(context, case.num_kv_heads, case.head_dim, generator=random).to(dtype)
        value = torch.randn(context, case.num_kv_heads, case.head_dim, generator=random).to(dtype)
        where = [(int(table[t // PAGE_SIZE]), t % PAGE_SIZE) for t in range(context)]
        for t, (page, offset) in enumerate(where[: context - new]):
            pages.key[page, offset], pages.value[page, offset] = key[t], value[t]
        queries.append(query)
        keys.append(key[context - new :])
        values.append(value[context - new :])
        slots += [page * PAGE_SIZE + offset for page, offset in where[context - new :]]
        expected.append(attend_in_float64(query, key, value, case))
    starts = [sum(case.new[:i]) for i in range(len(case.new) + 1)]
    layout = Layout(starts, list(case.contexts), tables, torch.tensor(slots))
    return Step(
        torch.cat(queries), torch.cat(keys), torch.cat(values), pages, layout, torch.cat(expected)
    )


def _page_tables(contexts: tuple[int, ...], random: torch.Generator) -> Tensor:
    """Tables `(B, P)` of pages in no order, padded with page 0, which nobody owns."""
    counts = [-(-context // PAGE_SIZE) for context in contexts]
    pages = torch.randperm(sum(counts), generator=random) + 1
    tables = torch.zeros(len(contexts), max(counts), dtype=torch.int64)
    for row, count, owned in zip(tables, counts, torch.split(pages, counts), strict=True):
        row[:count] = owned
    return tables


def attend_in_float64(query: Tensor, key: Tensor, value: Tensor, case: Case) -> Tensor:
    """Attention of one sequence, one query row and head at a time, as the formula reads."""
    new, num_heads, _ = query.shape
    query, key, value = query.double(), key.double(), value.double()
    output = torch.empty_like(query)
    for row in range(new):
        last = len(key) - new + row
        first = 0 if case.window is None else max(0, last - case.window + 1)
        for head in range(num_heads):
            kv_head = head // (num_heads // case.num_kv_heads)
            seen = key[first : last + 1, kv_head]
            weights = torch.softmax(seen @ query[row, head] * case.scale, dim=0)
            output[row, head] = weights @ value[first : last + 1, kv_head]
    return output
