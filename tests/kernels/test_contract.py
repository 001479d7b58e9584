"""Every backend keeps the contract: awkward shapes, formats, windows, dirty memory."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

from minimsg.kernels import BACKENDS
from minimsg.kernels.contract import Backend

from .cases import Case, build

TOLERANCE = {
    torch.float32: 2e-6,  # float32 sums of 100 terms of size 1: some 10 roundings of 1.2e-7
    torch.float16: 2e-3,  # weights and result rounded to 2**-11, values up to 4
    torch.bfloat16: 2e-2,  # the same at 2**-8
}

CASES = {
    "one token, its first": Case(contexts=(1,), new=(1,)),
    "one slot short of a page": Case(contexts=(15,), new=(1,)),
    "exactly a page": Case(contexts=(16,), new=(1,)),
    "one slot into a second page": Case(contexts=(17,), new=(1,)),
    "a whole prompt": Case(contexts=(100,), new=(100,)),
    "a chunk in the middle of a page": Case(contexts=(37,), new=(7,)),
    "decode rows of all lengths": Case(contexts=(1, 15, 16, 17, 100, 90, 3), new=(1,) * 7),
    "decode, prompt, chunk, decode": Case(contexts=(17, 33, 40, 100), new=(1, 33, 9, 1)),
    "decode rows that a prompt parts": Case(contexts=(60, 20, 61), new=(1, 20, 1)),
    "nine heads on three": Case((100, 17, 16), (1, 17, 5), 9, 3, 64),
    "four heads on four": Case((100, 17, 16), (1, 17, 5), 4, 4, 80),
    "eight heads on one": Case((100, 17, 16), (1, 17, 5), 8, 1, 64),
    "a window that cuts inside a page": Case((100, 50, 40, 9), (1, 50, 9, 1), window=21),
    "a window of one": Case((100, 20), (1, 20), window=1),
    "a window wider than anything": Case((100, 20), (1, 20), window=1000),
}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    backend: Backend = import_module(request.param).Backend()
    skip_if_it_cannot(backend, torch.float32)
    return backend


def skip_if_it_cannot(backend: Backend, dtype: torch.dtype) -> None:
    why_not = backend.supports(device=torch.device("cpu"), dtype=dtype, head_dim=64)
    if why_not is not None:
        pytest.skip(f"{backend.name}: {why_not}")


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attention_equals_float64_arithmetic(
    backend: Backend, case: Case, dtype: torch.dtype
) -> None:
    skip_if_it_cannot(backend, dtype)
    step = build(case, dtype)
    result = backend.attention(
        step.query, step.key, step.value, step.pages, step.layout,
        scale=case.scale, window=case.window,
    )  # fmt: skip
    assert result.dtype == dtype
    assert result.shape == step.query.shape
    assert (result.double() - step.expected).abs().max() <= TOLERANCE[dtype]


def test_new_keys_and_values_are_stored_in_their_slots_and_nowhere_else(backend: Backend) -> None:
    case = CASES["decode, prompt, chunk, decode"]
    step = build(case, torch.float32)
    before = step.pages.key.clone()
    backend.attention(
        step.query, step.key, step.value, step.pages, step.layout, scale=case.scale
    )  # fmt: skip
    shape = (-1, case.num_kv_heads, case.head_dim)
    assert torch.equal(step.pages.key.view(shape)[step.layout.slots], step.key)
    assert torch.equal(step.pages.value.view(shape)[step.layout.slots], step.value)
    others = torch.ones(len(before) * 16, dtype=torch.bool)
    others[step.layout.slots] = False
    now = step.pages.key.view(shape)[others]
    torch.testing.assert_close(now, before.view(shape)[others], equal_nan=True, rtol=0, atol=0)


def test_one_backend_serves_steps_of_other_shapes_and_formats_in_turn(backend: Backend) -> None:
    steps = [
        (CASES["nine heads on three"], torch.bfloat16),
        (CASES["one token, its first"], torch.float32),
        (CASES["decode rows of all lengths"], torch.float32),
        (CASES["nine heads on three"], torch.float16),
    ]
    for case, dtype in steps:
        if backend.supports(device=torch.device("cpu"), dtype=dtype, head_dim=case.head_dim):
            continue
        step = build(case, dtype)
        result = backend.attention(
            step.query, step.key, step.value, step.pages, step.layout, scale=case.scale
        )
        assert (result.double() - step.expected).abs().max() <= TOLERANCE[dtype]


def test_layers_with_and_without_window_share_a_step(backend: Backend) -> None:
    """The same layout, asked first without and then with a window, as two layers do."""
    full = Case((100, 50, 9), (1, 50, 1))
    windowed = Case((100, 50, 9), (1, 50, 1), window=20)
    layout = build(full, torch.float32).layout
    for case in (full, windowed, full):
        step = build(case, torch.float32)
        result = backend.attention(
            step.query, step.key, step.value, step.pages, layout,
            scale=case.scale, window=case.window,
        )  # fmt: skip
        assert (result.double() - step.expected).abs().max() <= TOLERANCE[torch.float32]


def test_many_long_decode_rows_are_split_over_calls(backend: Backend) -> None:
    case = Case(contexts=(700,) * 13, new=(1,) * 13, num_heads=2, num_kv_heads=1)
    step = build(case, torch.float32)
    result = backend.attention(
        step.query, step.key, step.value, step.pages, step.layout, scale=case.scale
    )
    assert (result.double() - step.expected).abs().max() <= TOLERANCE[torch.float32]
