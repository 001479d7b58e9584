"""The kernel of deterministic mode: the same bits however a sequence's tokens come."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages
from minimsg.kernels.tiled import Backend

from .cases import PAGE_SIZE, Case, build

CASES = {
    "four heads on two": Case((100, 47), (100, 47)),
    "an odd head": Case((50,), (50,), num_heads=9, num_kv_heads=3, head_dim=5),
    "a window": Case((100, 60), (100, 60), window=21),
    "many keys": Case((700,), (700,), num_heads=2, num_kv_heads=1),
}
DTYPES = [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_chunks_of_any_length_give_the_bits_of_whole_prompts(
    case: Case, dtype: torch.dtype
) -> None:
    step = build(case, dtype)
    whole = Backend().attention(
        step.query, step.key, step.value, step.pages, step.layout,
        scale=case.scale, window=case.window,
    )  # fmt: skip
    dirty = Pages(*(torch.full_like(step.pages.key, torch.nan) for _ in "kv"))
    backend, numbers = Backend(), random.Random(1)
    done = [0] * len(case.contexts)
    while any(count < context for count, context in zip(done, case.contexts, strict=True)):
        new = [
            min(numbers.choice((0, 1, 1, 5, 16, 37)), context - count)
            for count, context in zip(done, case.contexts, strict=True)
        ]
        rows = rows_of(case, done, new)
        done = [count + n for count, n in zip(done, new, strict=True)]
        layout = Layout(starts(new), list(done), step.layout.page_tables, step.layout.slots[rows])
        result = backend.attention(
            step.query[rows], step.key[rows], step.value[rows], dirty, layout,
            scale=case.scale, window=case.window,
        )  # fmt: skip
        assert torch.equal(result, whole[rows])


def test_rows_that_no_sequence_owns_are_stored_and_attend_to_nothing() -> None:
    """As `engine/tiles.py` pads: the slots of the padding lie in a page of nobody's."""
    case = Case((21,), (3,))
    step = build(case, torch.float32)
    backend, scratch_page = Backend(), len(step.pages.key) - 1
    alone = backend.attention(
        step.query, step.key, step.value, step.pages, step.layout, scale=case.scale
    )
    slots = torch.arange(scratch_page * PAGE_SIZE, (scratch_page + 1) * PAGE_SIZE)
    slots[2:5] = step.layout.slots
    query, key, value = (padded(each, 2) for each in (step.query, step.key, step.value))
    layout = Layout([2, 5], [21], step.layout.page_tables, slots)
    result = backend.attention(query, key, value, step.pages, layout, scale=case.scale)
    assert torch.equal(result[2:5], alone)
    assert not result[:2].any()
    assert not result[5:].any()


def starts(counts: list[int]) -> list[int]:
    return [sum(counts[:index]) for index in range(len(counts) + 1)]


def rows_of(case: Case, done: list[int], new: list[int]) -> Tensor:
    """Rows of the whole step in which every token was new: the next `new` of each sequence."""
    first = [start + count for start, count in zip(starts(list(case.new)), done, strict=False)]
    return torch.cat([torch.arange(a, a + n) for a, n in zip(first, new, strict=True)])


def padded(rows: Tensor, before: int) -> Tensor:
    """A page of rows, NaN except for `rows` from `before` on."""
    whole = rows.new_full((PAGE_SIZE, *rows.shape[1:]), torch.nan)
    whole[before : before + len(rows)] = rows
    return whole
