"""How fast this machine reads and multiplies, by operations of torch with all its threads.

A yardstick for the rounds of a benchmark (`rounds.py`) and for physical limits (`limits.py`).
What torch reaches is a lower bound of what the machine can.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

import torch
from torch import Tensor

PROBE_FLOATS: Final = 64 * 1024 * 1024  # 256 MiB of float32: far more than any cache
PROBE_ROWS: Final = 1024
MATRIX: Final = 1024  # rows and columns of the matrices that are multiplied
REPEATS: Final = 3
ENOUGH_S: Final = 0.5  # no more repeats after that: formats without hardware take seconds


def read_bandwidth() -> float:
    """Gigabytes per second that a product of a matrix and a vector reads: the best of three."""
    matrix = torch.ones(PROBE_ROWS, PROBE_FLOATS // PROBE_ROWS)
    vector = torch.ones(matrix.shape[1])
    return matrix.nbytes / _best(lambda: torch.mv(matrix, vector)) / 1e9


def matmul_gflops() -> dict[str, float]:
    """GFLOP/s (int8: GOP/s) of a square product in each format that torch multiplies here."""
    products = {
        "float32": lambda: _square(torch.float32),
        "bfloat16": lambda: _square(torch.bfloat16),
        "int8": _square_int8,
    }
    return {name: 2 * MATRIX**3 / _best(prepare()) / 1e9 for name, prepare in products.items()}


def _square(dtype: torch.dtype) -> Callable[[], Tensor]:
    matrix = torch.ones(MATRIX, MATRIX, dtype=dtype)
    return lambda: matrix @ matrix


def _square_int8() -> Callable[[], Tensor]:
    matrix = torch.ones(MATRIX, MATRIX, dtype=torch.int8)
    return lambda: torch._int_mm(matrix, matrix)


def _best(operation: Callable[[], Tensor]) -> float:
    """Seconds of the fastest of some, the first of which is slower."""
    seconds: list[float] = []
    while len(seconds) <= REPEATS and sum(seconds) < ENOUGH_S:
        start = perf_counter()
        operation()
        seconds.append(perf_counter() - start)
    return min(seconds)
