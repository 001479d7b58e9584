"""The emulated GPU finds what a real one would only sometimes show: without it no proof."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import minimsg.kernels.metal_paged as metal_paged
from minimsg.kernels.metal_paged import Backend, source

from .cases import Case, build
from .metal.emulator import Emulator, Library, Order, ShaderError, backward, forward, shuffled
from .test_contract import TOLERANCE

SHADER = """
#include <metal_stdlib>
using namespace metal;

kernel void round_half(device const float* from [[buffer(0)]], device half* to [[buffer(1)]],
    device float* back [[buffer(2)]], device const int* count [[buffer(3)]],
    uint2 at [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {
    for (int i = at.x; i < *count; i += grid.x) {
        to[i] = half(from[i]);
        back[i] = float(to[i]);
    }
}

kernel void round_bfloat(device const float* from [[buffer(0)]], device bfloat* to [[buffer(1)]],
    device float* back [[buffer(2)]], device const int* count [[buffer(3)]],
    uint2 at [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {
    for (int i = at.x; i < *count; i += grid.x) {
        to[i] = bfloat(from[i]);
        back[i] = float(to[i]);
    }
}

kernel void number(device float* to [[buffer(0)]], uint2 at [[thread_position_in_grid]],
                   uint2 grid [[threads_per_grid]]) {
    to[at.y * grid.x + at.x] = at.y * grid.x + at.x;
}

kernel void divergent_barrier(device float* to [[buffer(0)]],
                              uint index [[thread_index_in_threadgroup]]) {
    if (index < 40) threadgroup_barrier(mem_flags::mem_threadgroup);
    to[index] = index;
}

kernel void two_barriers(device float* to [[buffer(0)]],
                         uint index [[thread_index_in_threadgroup]]) {
    if (index < 32) threadgroup_barrier(mem_flags::mem_threadgroup);
    else
        threadgroup_barrier(mem_flags::mem_threadgroup);
    to[index] = index;
}

kernel void divergent_sum(device float* to [[buffer(0)]],
                          uint index [[thread_index_in_threadgroup]]) {
    if (index != 5) to[index] = simd_sum(1.0f);
}
"""


@pytest.fixture
def shader(emulator: Emulator) -> Library:
    return emulator.compile_shader(SHADER)


def barriers() -> dict[str, int]:
    """Line of each barrier in what is compiled for float and heads of 16, by its place."""
    lines = source(torch.float32, 16, 16).splitlines()
    where = [number for number, line in enumerate(lines, 1) if "threadgroup_barrier(" in line]
    return {f"barrier {index}": line for index, line in enumerate(where)}


@pytest.mark.parametrize("line", barriers().values(), ids=barriers())
def test_without_any_one_barrier_the_result_is_wrong(emulator: Emulator, line: int) -> None:
    emulator.removed_line = line
    errors = [error_in(emulator, order) for order in (forward, backward, shuffled)]
    assert not all(error <= 100 * TOLERANCE[torch.float32] for error in errors), errors


def error_in(emulator: Emulator, order: Order) -> float:
    """Largest error of a step with decode and prefill, threads run in this order."""
    case = Case(contexts=(100, 90), new=(1, 90))
    step = build(case, torch.float32)
    emulator.order = order
    result = Backend(emulator.compile_shader).attention(
        step.query, step.key, step.value, step.pages, step.layout, scale=case.scale
    )
    return float((result.double() - step.expected).abs().max())


@pytest.mark.parametrize("order", [forward, backward, shuffled])
def test_with_all_its_barriers_the_result_is_right_in_any_order(
    emulator: Emulator, order: Order
) -> None:
    assert error_in(emulator, order) <= TOLERANCE[torch.float32]


def test_all_five_barriers_of_the_shader_are_tried() -> None:
    text = Path(metal_paged.__file__).with_name("paged.metal").read_text()
    assert text.count("barrier(mem_flags::mem_threadgroup)") == len(barriers()) == 5


@pytest.mark.parametrize("kernel", ["divergent_barrier", "two_barriers"])
def test_a_barrier_that_some_threads_do_not_reach_is_an_error(shader: Library, kernel: str) -> None:
    with pytest.raises(ShaderError, match="a barrier that not all threads"):
        getattr(shader, kernel)(torch.zeros(64), threads=[64, 1], group_size=[64, 1])


@pytest.mark.parametrize("count", [32, 16])
def test_a_simd_operation_that_some_lanes_do_not_reach_is_an_error(
    shader: Library, count: int
) -> None:
    with pytest.raises(ShaderError, match="a simd operation that not all lanes"):
        shader.divergent_sum(torch.zeros(32), threads=[count, 1], group_size=[count, 1])


@pytest.mark.parametrize(
    ("kernel", "dtype"), [("round_half", torch.float16), ("round_bfloat", torch.bfloat16)]
)
def test_numbers_are_rounded_as_torch_rounds_them(
    shader: Library, kernel: str, dtype: torch.dtype
) -> None:
    every = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(dtype).float()
    between = torch.cat([every, every * (1 + 2**-11), every * (1 + 2**-8), torch.rand(999)])
    edges = torch.tensor([65519.9, 65520.0, 2**-25, 2**-25 * 1.01, 3.3e38, torch.inf, torch.nan])
    numbers = torch.cat([between, -edges, edges])
    rounded, back = torch.empty_like(numbers, dtype=dtype), torch.empty_like(numbers)
    count = torch.tensor([len(numbers)], dtype=torch.int32)
    getattr(shader, kernel)(numbers, rounded, back, count, threads=[64, 1], group_size=[32, 1])
    torch.testing.assert_close(rounded, numbers.to(dtype), equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(back, numbers.to(dtype).float(), equal_nan=True, rtol=0, atol=0)


def test_a_grid_need_not_be_a_multiple_of_its_groups(shader: Library) -> None:
    numbers = torch.full((5, 70), torch.nan)
    shader.number(numbers, threads=[70, 5], group_size=[32, 2])
    assert torch.equal(numbers.flatten(), torch.arange(350.0))


@pytest.mark.parametrize(
    "argument",
    [torch.zeros(4, dtype=torch.float16), torch.zeros(4, 2)[:, 0], torch.zeros(0), 1.0, 7],
    ids=["another format", "strides", "nothing", "a float", "an int"],
)
def test_what_a_gpu_would_misread_is_refused(shader: Library, argument: torch.Tensor) -> None:
    with pytest.raises(ShaderError, match="was given"):
        shader.number(argument, threads=[4, 1], group_size=[4, 1])


def test_a_shader_that_does_not_compile_is_an_error_with_the_compilers_words(
    emulator: Emulator,
) -> None:
    with pytest.raises(ShaderError, match="nonsense"):
        emulator.compile_shader("#include <metal_stdlib>\nint x = nonsense;\n")
