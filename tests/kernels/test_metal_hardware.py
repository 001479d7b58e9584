"""`metal_paged` on a real Apple GPU, for whoever has one: the contract's cases, all formats."""

from __future__ import annotations

import pytest
import torch

from minimsg.kernels.contract import Layout, Pages
from minimsg.kernels.metal_paged import Backend

from .cases import Case, build
from .test_contract import CASES, TOLERANCE

MPS = torch.device("mps")

pytestmark = pytest.mark.skipif(
    not torch.backends.mps.is_available(), reason="torch sees no Apple GPU"
)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attention_equals_float64_arithmetic(case: Case, dtype: torch.dtype) -> None:
    step = build(case, dtype)
    query, key, value = (each.to(MPS) for each in (step.query, step.key, step.value))
    pages = Pages(step.pages.key.to(MPS), step.pages.value.to(MPS))
    tables, slots = step.layout.page_tables.to(MPS), step.layout.slots.to(MPS)
    layout = Layout(step.layout.query_starts, step.layout.context_lens, tables, slots)
    result = Backend().attention(
        query, key, value, pages, layout, scale=case.scale, window=case.window
    )
    assert (result.cpu().double() - step.expected).abs().max() <= TOLERANCE[dtype]
