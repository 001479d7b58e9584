"""How far two tensors of the same values are apart, also where one has no numbers.

Knows tensors only; whose they are: `kernel_check.py`, `compare.py`.
"""

from __future__ import annotations

import math

from torch import Tensor


def largest_difference(ours: Tensor, other: Tensor) -> tuple[float, float]:
    """The largest difference of two tensors, and the same of the largest value in `other`.

    Infinite where one has a number and the other none. Where both have none they are the same.
    """
    ours, other = ours.float(), other.float()
    is_same = (ours == other) | (ours.isnan() & other.isnan())
    gaps = (ours - other).abs().masked_fill(is_same, 0.0)
    difference = float(gaps.nan_to_num(nan=math.inf, posinf=math.inf).max())
    largest = float(other.abs().nan_to_num(posinf=0.0).max())
    return difference, difference / largest if largest else difference
