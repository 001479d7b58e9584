"""Random steps for `bench.py`, and what attention of them is in float64.

`draw` lays sequences out in pages in no order; slots that no token owns hold NaN. The tests
have cases of their own (`tests/kernels/cases.py`), which are not installed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.kernels.contract import Backend, Layout, Pages
from minimsg.kernels.triton_plan import PlannedLayout, blocks_for, plan_for

PAGE_SIZE = 16


@dataclass(frozen=True)
class Heads:
    """The shape of one layer."""

    query: int
    kv: int
    size: int

    @property
    def scale(self) -> float:
        return float(self.size**-0.5)


QWEN3_0_6B = Heads(query=16, kv=8, size=128)


@dataclass(frozen=True)
class Case:
    """Sequences by the length of their context and how many of its tokens are new."""

    name: str
    contexts: list[int]
    new: list[int]
    heads: Heads = QWEN3_0_6B
    window: int | None = None


CASES = (
    Case("decode", [1, 17, 300, 900], [1, 1, 1, 1]),
    Case("prompt", [200], [200]),
    Case("mixed", [17, 200, 80], [1, 40, 80], Heads(9, 3, 64)),
    Case("window", [300, 100], [1, 60], Heads(8, 1, 80), window=33),
)


@dataclass(frozen=True)
class Step:
    """The arguments of `attention`, with pages for each of several layers."""

    query: Tensor
    key: Tensor
    value: Tensor
    layers: list[Pages]
    layout: Layout
    scale: float

    def attend(self, backend: Backend, window: int | None = None) -> Tensor:
        """Every layer once; what the last one gave."""
        for pages in self.layers:
            output = backend.attention(
                self.query, self.key, self.value, pages, self.layout,
                scale=self.scale, window=window,
            )  # fmt: skip
        return output


def draw(
    heads: Heads,
    contexts: list[int],
    new: list[int],
    dtype: torch.dtype,
    device: torch.device,
    num_layers: int = 1,
) -> Step:
    """A step of sequences of `contexts` tokens, the last `new` of each being new."""
    random = torch.Generator(device).manual_seed(0)

    def normal(num: int, num_heads: int) -> Tensor:
        shape = (num, num_heads, heads.size)
        return torch.randn(shape, generator=random, device=device, dtype=dtype)

    tables = _page_tables(contexts)
    of_each = list(zip(tables, contexts, new, strict=True))
    owned = torch.cat([_slots(table, range(context)) for table, context, _ in of_each]).to(device)
    slots = torch.cat([_slots(table, range(c - count, c)) for table, c, count in of_each])
    shape = (int(tables.max()) + 1, PAGE_SIZE, heads.kv, heads.size)
    layers = []
    for _ in range(num_layers):
        pages = Pages(*(torch.full(shape, torch.nan, dtype=dtype, device=device) for _ in "kv"))
        for each in (pages.key, pages.value):
            each.view(-1, *shape[2:])[owned] = normal(len(owned), heads.kv)
        layers.append(pages)
    starts = [sum(new[:index]) for index in range(len(new) + 1)]
    return Step(
        query=normal(sum(new), heads.query),
        key=normal(sum(new), heads.kv),
        value=normal(sum(new), heads.kv),
        layers=layers,
        layout=Layout(starts, contexts, tables.to(device), slots.to(device)),
        scale=heads.scale,
    )


def with_plan(step: Step) -> Step:
    """The step with all that Triton reads on the device, so that a graph can be captured."""
    group, size = step.query.shape[1] // step.key.shape[1], step.key.shape[2]
    plan = plan_for(step.layout, blocks_for(group, size, step.key.dtype).tokens)
    return replace(step, layout=PlannedLayout(**vars(step.layout), plan=plan))


def in_float64(step: Step, window: int | None) -> Tensor:
    """What `attend` must give, `(T, Hq, D)`; the new keys and values must be stored already."""
    pages, layout, outputs = step.layers[-1], step.layout, []
    for index, context in enumerate(layout.context_lens):
        rows = slice(*layout.query_starts[index : index + 2])
        slots = _slots(layout.page_tables[index], range(context))
        keys, values = (
            each.flatten(0, 1)[slots].double().transpose(0, 1) for each in (pages.key, pages.value)
        )
        query = step.query[rows].double().transpose(0, 1)
        seer = torch.arange(context - query.shape[1], context, device=query.device)[:, None]
        seen = torch.arange(context, device=query.device)
        is_seen = (seen <= seer) & (seen > seer - (window or context))
        attended = F.scaled_dot_product_attention(
            query, keys, values, attn_mask=is_seen, scale=step.scale, enable_gqa=True
        )
        outputs.append(attended.transpose(0, 1))
    return torch.cat(outputs)


def _page_tables(contexts: list[int]) -> Tensor:
    """Tables `(B, P)` of pages in no order, padded with page 0, which nobody owns."""
    counts = [-(-context // PAGE_SIZE) for context in contexts]
    pages = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(0)) + 1
    owned = torch.split(pages, counts)
    return torch.nn.utils.rnn.pad_sequence(list(owned), batch_first=True)


def _slots(table: Tensor, span: range) -> Tensor:
    """Where the tokens at the positions of `span` lie: `(len(span),)`."""
    positions = torch.arange(span.start, span.stop, device=table.device)
    return table[positions // PAGE_SIZE] * PAGE_SIZE + positions % PAGE_SIZE
