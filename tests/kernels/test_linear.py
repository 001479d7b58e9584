"""Every backend that multiplies does it as float64 arithmetic: odd sizes, what stands around it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.kernels import BACKENDS
from minimsg.kernels.contract import Backend, LinearOperator
from minimsg.kernels.cpu_native import GROUP, quantize

CPU = torch.device("cpu")
SIZES = [(32, 16), (42, 123), (576, 1), (1, 7), (96, 50), (320, 64)]  # inputs, outputs
ROWS = [0, 1, 2, 3, 4, 5, 6, 17, 150]


@dataclass(frozen=True)
class Norm:
    weight: Tensor
    epsilon: float = 1e-5


@pytest.fixture(params=BACKENDS)
def operator(request: pytest.FixtureRequest) -> LinearOperator:
    backend: Backend = import_module(request.param).Backend()
    if not isinstance(backend, LinearOperator):
        pytest.skip(f"{backend.name} leaves products to torch")
    why_not = backend.supports(device=CPU, dtype=torch.float32, head_dim=64)
    if why_not is not None:
        pytest.skip(f"{backend.name}: {why_not}")
    return backend


@dataclass(frozen=True)
class Case:
    """Random arguments of `linear`."""

    weight: Tensor
    bias: Tensor | None
    x: Tensor
    norm: Norm | None
    add_to: Tensor | None
    is_gated: bool


def a_case(inputs: int, outputs: int, rows: int, *, is_full: bool, is_gated: bool) -> Case:
    """With bias, norm and sum if it is full. Like a model's: products of size one."""
    random = torch.Generator().manual_seed(inputs * 1000 + outputs + rows)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random)

    num_weights = 2 * outputs if is_gated else outputs
    return Case(
        weight=draw(num_weights, inputs) / inputs**0.5,
        bias=draw(num_weights) if is_full else None,
        x=draw(rows, inputs),
        norm=Norm(1 + draw(inputs) / 4) if is_full else None,
        add_to=draw(rows, outputs) if is_full else None,
        is_gated=is_gated,
    )


def run(operator: LinearOperator, case: Case, dtype: torch.dtype) -> Tensor:
    packed = operator.pack(case.weight, dtype, is_gated=case.is_gated)
    matrix = operator.matrix(packed, case.bias, case.weight.shape, is_gated=case.is_gated)
    add_to = None if case.add_to is None else case.add_to.clone()
    result = operator.linear(case.x, matrix, case.norm, add_to)
    assert add_to is None or result is add_to
    return result


def in_float64(case: Case, weight: Tensor, *, is_rounded: bool = False) -> Tensor:
    """The formula, read from left to right; inputs in groups of int8 if they `is_rounded`."""
    x = case.x.double()
    if case.norm is not None:
        x = F.rms_norm(x, x.shape[-1:], case.norm.weight.double(), case.norm.epsilon)
    if is_rounded:
        x = rounded_in_groups(x)
    product = x @ weight.double().T
    if case.bias is not None:
        product = product + case.bias.double()
    if case.is_gated:
        gate, up = product.chunk(2, dim=-1)
        product = F.silu(gate) * up
    return product if case.add_to is None else product + case.add_to.double()


def rounded_in_groups(x: Tensor) -> Tensor:
    groups = F.pad(x, (0, -x.shape[1] % GROUP)).view(len(x), -(-x.shape[1] // GROUP), GROUP)
    scales = groups.abs().amax(dim=-1, keepdim=True) / 127
    return ((groups / scales).nan_to_num(0).round() * scales).flatten(1)[:, : x.shape[1]]


def dequantized(weight: Tensor) -> Tensor:
    numbers, scales = quantize(F.pad(weight, (0, -weight.shape[1] % GROUP)))
    groups = numbers.view(len(weight), -1, GROUP).double() * scales.double()[..., None]
    return groups.flatten(1)[:, : weight.shape[1]]


@pytest.mark.parametrize("is_gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("is_full", [False, True], ids=["alone", "with bias, norm and sum"])
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_float32_matrix_multiplies_as_float64_does(
    operator: LinearOperator, inputs: int, outputs: int, is_full: bool, is_gated: bool
) -> None:
    for rows in ROWS:
        case = a_case(inputs, outputs, rows, is_full=is_full, is_gated=is_gated)
        expected = in_float64(case, case.weight)
        # sums of up to 576 products, of size one together: some roundings of 2**-24 at size 4
        torch.testing.assert_close(
            run(operator, case, torch.float32).double(), expected, rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("is_gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("is_full", [False, True], ids=["alone", "with bias, norm and sum"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_rounded_weights_are_multiplied_without_a_further_error(
    inputs: int, outputs: int, dtype: torch.dtype, is_full: bool, is_gated: bool
) -> None:
    """The native kernel's activations are float32; int8 rounds its inputs in groups, too."""
    operator = native(dtype)
    for rows in ROWS:
        case = a_case(inputs, outputs, rows, is_full=is_full, is_gated=is_gated)
        is_int8 = dtype is torch.int8
        weight = dequantized(case.weight) if is_int8 else case.weight.to(dtype)
        expected = in_float64(case, weight, is_rounded=is_int8)
        # an input half way between two numbers may go to the other one than in float64: the
        # weight there, of size 0.2, times a scale of 0.02 (a tie is rare: few outputs have one)
        error = (run(operator, case, dtype).double() - expected).abs()
        assert error.numel() == 0 or error.max() < (2e-2 if is_int8 else 1e-5)
        assert error.numel() == 0 or error.quantile(0.9) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_stock_torch_multiplies_other_formats_within_their_rounding(dtype: torch.dtype) -> None:
    from minimsg.kernels.cpu import Backend

    case = a_case(64, 32, 3, is_full=False, is_gated=False)
    packed = Backend().pack(case.weight, dtype, is_gated=False)
    matrix = Backend().matrix(packed, None, case.weight.shape, is_gated=False)
    result = Backend().linear(case.x.to(dtype), matrix, None, None)
    # 64 products summed: an error of a few of the format's units at size 4
    tolerance = 8 * torch.finfo(dtype).eps
    expected = case.x.to(dtype).double() @ packed.double().T
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_stays_so_and_in_its_row(dtype: torch.dtype, bad: float) -> None:
    """The sampler refuses a row that is not finite; it must not become a number on the way."""
    case = a_case(96, 40, 5, is_full=True, is_gated=True)
    sound = run(native(dtype), case, dtype)
    case.x[2, 50] = bad
    result = run(native(dtype), case, dtype)
    assert not result[2].isfinite().any()
    others = torch.tensor([0, 1, 3, 4])
    assert torch.equal(result[others], sound[others])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
def test_a_rows_bits_do_not_depend_on_its_neighbours(dtype: torch.dtype) -> None:
    case = a_case(576, 200, 150, is_full=True, is_gated=True)
    whole = run(native(dtype), case, dtype)
    assert case.add_to is not None
    for rows in (slice(0, 1), slice(3, 5), slice(77, 90), slice(9, 150)):
        part = Case(
            case.weight, case.bias, case.x[rows], case.norm, case.add_to[rows], case.is_gated
        )
        assert torch.equal(run(native(dtype), part, dtype), whole[rows])


def native(dtype: torch.dtype) -> LinearOperator:
    from minimsg.kernels.cpu_native import Backend

    why_not = Backend().supports(device=CPU, dtype=dtype, head_dim=64)
    if why_not is not None:
        pytest.skip(why_not)
    return Backend()
