"""`metal_paged` on an emulated GPU keeps the contract, and hands over what a GPU reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages
from minimsg.kernels.metal_paged import Backend, source

from . import cases
from .cases import Case, Step, build
from .metal.emulator import Emulator, Order, backward, forward, shuffled
from .test_contract import CASES, TOLERANCE

FEW_DTYPES = [torch.float16, torch.bfloat16]
SMALL_HEADS = {name: case for name, case in CASES.items() if case.head_dim == 16}
LARGE_HEADS = {
    "heads of 128": Case((100, 50, 17), (1, 50, 9), 8, 2, 128),
    "heads of 256": Case((70, 40, 17), (1, 40, 9), 3, 1, 256, window=33),
    "heads of an odd size": Case((70, 40, 17), (1, 40, 9), 2, 1, 77),
}


def run(emulator: Emulator, step: Step, case: Case) -> Tensor:
    return Backend(emulator.compile_shader).attention(
        step.query, step.key, step.value, step.pages, step.layout,
        scale=case.scale, window=case.window,
    )  # fmt: skip


def check(emulator: Emulator, case: Case, dtype: torch.dtype) -> None:
    step = build(case, dtype)
    result = run(emulator, step, case)
    assert result.dtype == dtype
    assert (result.double() - step.expected).abs().max() <= TOLERANCE[dtype]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attention_in_float_equals_float64_arithmetic(emulator: Emulator, case: Case) -> None:
    check(emulator, case, torch.float32)


@pytest.mark.parametrize("dtype", FEW_DTYPES, ids=str)
@pytest.mark.parametrize("case", SMALL_HEADS.values(), ids=SMALL_HEADS)
def test_half_and_bfloat_equal_float64_arithmetic(
    emulator: Emulator, case: Case, dtype: torch.dtype
) -> None:
    check(emulator, case, dtype)


@pytest.mark.metal
@pytest.mark.parametrize("order", [forward, backward, shuffled])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", (CASES | LARGE_HEADS).values(), ids=CASES | LARGE_HEADS)
def test_every_case_in_every_format_and_order(
    emulator: Emulator, case: Case, dtype: torch.dtype, order: Order
) -> None:
    emulator.order = order
    check(emulator, case, dtype)


@pytest.mark.metal
@pytest.mark.parametrize("page_size", [1, 7, 256])
def test_pages_of_any_size(
    emulator: Emulator, page_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "PAGE_SIZE", page_size)
    check(emulator, CASES["decode, prompt, chunk, decode"], torch.float32)


@pytest.mark.metal
@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("head_dim", [16, 77, 256])
def test_no_array_is_left_and_no_number_overflows(
    head_dim: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    case = Case((100, 50, 17), (1, 50, 9), head_dim=head_dim, window=33)
    check(Emulator(tmp_path, flags=("-fsanitize=undefined",)), case, torch.float32)
    assert capfd.readouterr().err == ""


def test_new_keys_and_values_are_stored_in_their_slots_and_nowhere_else(
    emulator: Emulator,
) -> None:
    case = CASES["nine heads on three"]
    step = build(case, torch.float32)
    expected = [step.pages.key.clone(), step.pages.value.clone()]
    for pages, new in zip(expected, (step.key, step.value), strict=True):
        pages.view(-1, *new.shape[1:])[step.layout.slots] = new
    run(emulator, step, case)
    for pages, wanted in zip((step.pages.key, step.pages.value), expected, strict=True):
        torch.testing.assert_close(pages, wanted, equal_nan=True, rtol=0, atol=0)


def test_tensors_may_be_slices_of_larger_ones(emulator: Emulator) -> None:
    """Query, key and value of one fused projection, and the pages of one layer of two."""
    case = CASES["decode, prompt, chunk, decode"]
    step = build(case, torch.float32)
    fused = torch.cat([step.query, step.key, step.value], dim=1)  # (T, Hq + 2 * Hkv, D)
    query, key, value = fused[:, :4], fused[:, 4:6], fused[:, 6:]
    layers = torch.stack([torch.full_like(step.pages.key, torch.nan), step.pages.key])
    pages = Pages(layers[1], step.pages.value)
    result = run(emulator, replace(step, query=query, key=key, value=value, pages=pages), case)
    assert (result.double() - step.expected).abs().max() <= TOLERANCE[torch.float32]
    assert layers[0].isnan().all()


def test_rows_that_no_sequence_owns_change_no_other(emulator: Emulator) -> None:
    case = CASES["a chunk in the middle of a page"]
    step = build(case, torch.float32)
    nobodys = torch.full((2, 4, 16), torch.nan)
    slots = torch.cat([torch.tensor([0, 1]), step.layout.slots])
    padded = replace(
        step,
        query=torch.cat([nobodys, step.query]),
        key=torch.cat([nobodys[:, :2], step.key]),
        value=torch.cat([nobodys[:, :2], step.value]),
        layout=Layout([2, 9], [37], step.layout.page_tables, slots),
    )
    result = run(emulator, padded, case)[2:]
    assert (result.double() - step.expected).abs().max() <= TOLERANCE[torch.float32]


@pytest.mark.parametrize("window", [None, 21])
def test_a_row_has_the_same_bits_in_whichever_tile_it_comes(
    emulator: Emulator, window: int | None
) -> None:
    case = Case((100,), (100,), window=window)
    step = build(case, torch.float32)
    whole = run(emulator, step, case)
    chunk = slice(41, 97)
    layout = Layout([0, 56], [97], step.layout.page_tables, step.layout.slots[chunk])
    part = replace(
        step, query=step.query[chunk], key=step.key[chunk], value=step.value[chunk], layout=layout
    )
    assert torch.equal(run(emulator, part, case), whole[chunk])


def test_a_shader_is_compiled_once_for_all_layers_and_steps(emulator: Emulator) -> None:
    sources: list[str] = []

    def compile_shader(text: str) -> object:
        sources.append(text)
        return emulator.compile_shader(text)

    backend = Backend(compile_shader)
    for name in ("a whole prompt", "a window of one"):
        step = build(CASES[name], torch.float32)
        for _layer in range(2):
            backend.attention(
                step.query, step.key, step.value, step.pages, step.layout, scale=1.0
            )  # fmt: skip
    assert sources == [source(torch.float32, 16, 16)]
