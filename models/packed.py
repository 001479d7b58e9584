"""Weight matrices in the order in which oneDNN multiplies them, for CPUs.

A plain matrix is brought into that order inside each call; a packed one was, once. Worth
a factor of 1.2 to 1.7 with several rows (float32, AVX2, 135M shapes), at the price of
the weights a second time. The operators are those that torch.compile itself calls.
Knows tensors, no model; numbers differ from the plain product by rounding only.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

logger = logging.getLogger("minimsg")


def pack(weight: Tensor) -> Tensor | None:
    """`weight` `(out, in)` in oneDNN's order; None where there is no such form of it."""
    if weight.device.type != "cpu":
        return None
    try:
        packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    except (RuntimeError, AttributeError) as error:  # not this dtype on this CPU, or no oneDNN
        logger.debug("weights stay plain: %s", error)
        return None
    return packed


def packed_linear(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """`x W^T + b` for x `(T, in)`; `packed` is from `pack`."""
    output: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return output


def is_faster_plain(x: Tensor) -> bool:
    """One row of float32 is bound by memory, and the plain product has the lighter call."""
    return len(x) == 1 and x.dtype is torch.float32
