"""What a device reaches at best: bytes read and multiplications a second, by torch alone.

The yardstick of `bench.py`. Also how anything is timed there: by the device's own clock on
CUDA, where a call returns before the work is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch


@dataclass(frozen=True)
class Peaks:
    """The limits that shares are taken of."""

    bytes_per_s: float
    flop_per_s: float


def measure_peaks(device: torch.device, dtype: torch.dtype, *, quick: bool = False) -> Peaks:
    """Read bandwidth by sums of 1 GiB, multiplication by square products in `dtype`."""
    large = torch.ones((1 << 22) if quick else (1 << 28), device=device)  # float32
    size = 256 if quick else 8192 if device.type == "cuda" else 1024
    square = torch.ones(size, size, dtype=dtype, device=device)
    return Peaks(
        bytes_per_s=large.nbytes / seconds(large.sum, device),
        flop_per_s=2 * size**3 / seconds(lambda: square @ square, device),
    )


def seconds(run: Callable[[], object], device: torch.device, repeats: int = 10) -> float:
    """The median duration of `run`, after one that is not counted."""
    run()
    return median(_once(run, device) for _ in range(repeats))


def _once(run: Callable[[], object], device: torch.device) -> float:
    if device.type != "cuda":
        start = perf_counter()
        run()
        return perf_counter() - start
    begin, end = (torch.Event(device.type, enable_timing=True) for _ in range(2))
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end)) / 1000  # of milliseconds
