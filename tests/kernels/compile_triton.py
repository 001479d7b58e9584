"""Compile what the Triton backend launches, for a GPU that is not there. A program of its own.

`python compile_triton.py 90` calls the backend as the engine does, with every launch replaced
by a compilation for compute capability 9.0, and prints a JSON line for each compiled kernel.
It proves that the kernels can be compiled and fit a processor, not what they compute.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from minimsg.kernels.triton_paged import Backend

from .cases import Case, build

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
CASES = {
    "9/3/64": Case((40, 33), (1, 33), 9, 3, 64),
    "4/4/80": Case((40, 33), (1, 33), 4, 4, 80),
    "16/8/128": Case((40, 33), (1, 33), 16, 8, 128),
    "8/1/128, window": Case((40, 33), (1, 33), 8, 1, 128, window=20),
    "8/1/256": Case((40, 33), (1, 33), 8, 1, 256),
}


class NoDevice:
    """As much of a driver as a compilation asks for."""

    def __init__(self, capability: int) -> None:
        self._target = GPUTarget("cuda", capability, 32)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def compiled(capability: int) -> Iterator[dict[str, object]]:
    """Each kernel that the cases launch, in every number format."""
    triton.runtime.driver.set_active(NoDevice(capability))
    kernels: list[CompiledKernel] = []
    JITFunction.__getitem__ = _compiling(kernels)
    for name, case in CASES.items():
        for dtype in DTYPES:
            step = build(case, dtype)
            Backend().attention(
                step.query, step.key, step.value, step.pages, step.layout,
                scale=case.scale, window=case.window,
            )  # fmt: skip
            for kernel in kernels:
                yield {
                    "case": name,
                    "dtype": str(dtype),
                    "kernel": kernel.metadata.name,
                    "shared_bytes": kernel.metadata.shared,
                    "cubin_bytes": len(kernel.asm["cubin"]),
                    "has_tensor_cores": "mma" in kernel.asm["ptx"],
                    "is_asynchronous": "cp.async" in kernel.asm["ptx"],
                }
            kernels.clear()


def _compiling(kernels: list[CompiledKernel]) -> Callable[..., Callable[..., None]]:
    """What stands in for `kernel[grid]`."""

    def launch(kernel: JITFunction, grid: object) -> Callable[..., None]:
        return lambda *args, **options: kernels.append(
            kernel.run(*args, grid=grid, warmup=True, **options)
        )

    return launch


if __name__ == "__main__":
    for line in compiled(int(sys.argv[1])):
        print(json.dumps(line), flush=True)
