"""A packed matrix gives the product of the plain one, for any number of rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from minimsg.models.layers import Linear


def a_linear(inputs: int, outputs: int, *, bias: bool) -> Linear:
    torch.manual_seed(0)
    linear = Linear(inputs, outputs, bias=bias).requires_grad_(False)
    for parameter in linear.parameters():
        parameter.normal_()
    return linear


def in_float64(linear: Linear, x: Tensor) -> Tensor:
    product = x.double() @ linear.weight.double().T
    return product if linear.bias is None else product + linear.bias.double()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 32), (42, 123), (576, 1), (1, 7)])
@pytest.mark.parametrize("rows", [0, 1, 2, 17])
def test_a_packed_matrix_multiplies_as_float64_does(
    inputs: int, outputs: int, rows: int, bias: bool
) -> None:
    linear = a_linear(inputs, outputs, bias=bias)
    linear.pack()
    if linear.packed is None:
        pytest.skip("oneDNN has no order of its own for float32 here")
    x = torch.randn(rows, inputs)
    # each of up to 576 partial sums, of size about 24, rounds by 2**-24 of itself
    torch.testing.assert_close(
        linear(x).double(), in_float64(linear, x), rtol=1e-5, atol=576 * 24 * 2**-24
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes_multiply_within_their_rounding_packed_or_plain(dtype: torch.dtype) -> None:
    linear = a_linear(64, 32, bias=True).to(dtype)
    linear.pack()
    x = torch.randn(3, 64, dtype=dtype)
    # 64 products of size 1 summed: an error of a few of the format's units at size 8
    tolerance = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(
        linear(x).double(), in_float64(linear, x), rtol=tolerance, atol=tolerance
    )
