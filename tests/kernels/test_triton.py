"""The Triton backend in Triton's interpreter against float64, and compiled for GPUs.

Start with `TRITON_INTERPRET=1 pytest -m triton`; the README says how to get triton. The
interpreter computes in float32 and float16 what a GPU would, one program after the other: no
race shows. Its bfloat16 products are wrong (triton 3.8 multiplies their bits), so bfloat16 is
only compiled. A compilation shows that a kernel is well formed and fits a processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from minimsg.kernels import bench_steps
from minimsg.kernels.contract import Pages
from minimsg.kernels.triton_paged import Backend
from minimsg.kernels.triton_plan import Plan, PlannedLayout

from .cases import PAGE_SIZE, Case, Step, build
from .test_contract import CASES as CONTRACT
from .test_contract import TOLERANCE
from .test_contract import (  # noqa: F401  run here with the `backend` below
    test_layers_with_and_without_window_share_a_step as test_layers_share_a_step,
)
from .test_contract import (  # noqa: F401
    test_new_keys_and_values_are_stored_in_their_slots_and_nowhere_else as test_store,
)

ROOT = Path(__file__).parents[2]
GENERATIONS = {"80": "A100", "90": "H100", "100": "B200", "120": "RTX 5090"}
SHARED_BYTES = 99 << 10  # of one program on sm_120, the least of the four
CASES = {
    **CONTRACT,
    "shares of pages, some empty": Case((1000, 17, 1, 300), (1, 1, 1, 1)),
    "shares of a window": Case((1000, 400), (1, 1), window=333),
    "a chunk after many blocks": Case((300, 70), (90, 20), 6, 2, 64),
    "a chunk with a window, many blocks": Case((300, 150), (90, 150), 4, 1, 64, window=70),
    "the first of two rows sees all but the last key of a block": Case((64,), (2,)),
    "full pages": Case((160, 32), (1, 32), 4, 4, 128),
    "three heads on one, wide": Case((50, 40), (1, 40), 3, 1, 128),
    "four heads on one, widest": Case((50, 40), (1, 40), 4, 1, 256),
    "eight heads on one, odd": Case((50, 40), (1, 40), 8, 1, 80),
    "an odd size": Case((50, 21), (1, 21), 6, 2, 5),
}

pytestmark = pytest.mark.triton


@pytest.fixture
def backend() -> Backend:
    backend = Backend()
    why_not = backend.supports(device=torch.device("cpu"), dtype=torch.float32, head_dim=64)
    if why_not is not None:
        pytest.skip(why_not)
    return backend


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attention_equals_float64_arithmetic(
    backend: Backend, case: Case, dtype: torch.dtype
) -> None:
    step = build(case, dtype)
    result = run(backend, step, case)
    assert result.dtype == dtype
    tolerance = TOLERANCE[dtype] * max(1, case.head_dim / 128)  # a score sums as many products
    assert (result.double() - step.expected).abs().max() <= tolerance


def test_slices_of_one_projection_are_read_where_they_lie(backend: Backend) -> None:
    case = Case((40, 20), (1, 20), 6, 2, 64)
    step = build(case, torch.float32)
    fused = torch.cat((step.query, step.key, step.value), dim=1)  # (T, Hq + 2 Hkv, D)
    query, key, value = torch.split(fused, [6, 2, 2], dim=1)
    result = run(backend, Step(query, key, value, step.pages, step.layout, step.expected), case)
    assert (result.double() - step.expected).abs().max() <= TOLERANCE[torch.float32]


def test_a_layout_with_its_own_plan_is_filled_anew_and_its_padding_leaves_no_trace(
    backend: Backend,
) -> None:
    """Three rows for two sequences, of which first one and then both run, as a graph does."""
    case = Case((40, 300), (1, 1))
    step = build(case, torch.float32)
    plan = Plan(
        starts=torch.arange(4, dtype=torch.int32),
        lengths=torch.zeros(3, dtype=torch.int32),
        decoding=torch.arange(3, dtype=torch.int32),
        tiles=torch.empty(0, 2, dtype=torch.int32),
        longest=4096,
    )
    tables = torch.zeros(3, step.layout.page_tables.shape[1], dtype=torch.int64)
    layout = PlannedLayout([0, 1, 2, 3], [0] * 3, tables, torch.full((3,), -1), plan)
    query, key, value = (with_padding(each) for each in (step.query, step.key, step.value))
    padded = Step(query, key, value, step.pages, layout, step.expected)
    untouched = [step.pages.key.clone(), step.pages.value.clone()]
    for num in (1, 2):
        tables[:num] = step.layout.page_tables[:num]
        plan.lengths[:num] = torch.tensor(case.contexts)[:num]
        layout.slots[:num] = step.layout.slots[:num]
        result = run(backend, padded, case)
        assert (result[:num].double() - step.expected[:num]).abs().max() <= 2e-6
        assert not result[num:].any()
        assert_only_changed(step.pages, untouched, step.layout.slots[:num])


@pytest.mark.parametrize("case", bench_steps.CASES, ids=lambda case: case.name)
def test_what_the_benchmark_captures_is_right(backend: Backend, case: bench_steps.Case) -> None:
    device = torch.device("cpu")
    step = bench_steps.draw(case.heads, case.contexts, case.new, torch.float32, device)
    result = bench_steps.with_plan(step).attend(backend, case.window)
    expected = bench_steps.in_float64(step, case.window)
    assert (result.double() - expected).abs().max() <= TOLERANCE[torch.float32]


@pytest.mark.timeout(1200)  # two minutes, more on a busy machine
@pytest.mark.parametrize("capability", GENERATIONS)
def test_every_kernel_compiles_and_fits(capability: str, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernels.compile_triton", capability],
        capture_output=True, text=True, cwd=ROOT, env=environment, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kernels = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["kernel"] for each in kernels} == {
        "store", "decode_split", "decode_merge", "prefill",
    }  # fmt: skip
    for each in kernels:
        assert each["cubin_bytes"] > 0
        assert each["shared_bytes"] <= SHARED_BYTES, each
        if each["kernel"] in ("decode_split", "prefill"):
            assert each["is_asynchronous"], each
            assert each["has_tensor_cores"] or each["dtype"] == "torch.float32", each


def run(backend: Backend, step: Step, case: Case) -> Tensor:
    return backend.attention(
        step.query, step.key, step.value, step.pages, step.layout,
        scale=case.scale, window=case.window,
    )  # fmt: skip


def with_padding(rows: Tensor) -> Tensor:
    """One more row, of nobody."""
    return torch.cat((rows, torch.full_like(rows[:1], torch.nan)))


def assert_only_changed(pages: Pages, before: list[Tensor], slots: Tensor) -> None:
    others = torch.ones(pages.key.shape[0] * PAGE_SIZE, dtype=torch.bool)
    others[slots] = False
    for now, then in zip((pages.key, pages.value), before, strict=True):
        torch.testing.assert_close(
            now.flatten(0, 1)[others], then.flatten(0, 1)[others], equal_nan=True, rtol=0, atol=0
        )
