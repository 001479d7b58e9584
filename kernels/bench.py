"""How near the kernels come to a device's limits: `python -m minimsg.kernels.bench --device cuda`.

First every backend that supports the device is held against float64; figures of a kernel
that is wrong are worth nothing, so that ends the run. Then, with the kernel that an engine
would take: attention while decoding (bytes read, beside the bandwidth that a sum reaches),
attention of a prompt (multiplications, beside a square product), and a whole model.
`--quick` is a short run of small shapes, to see that it works.

Not yet run on CUDA hardware. There, what is timed is a CUDA graph where the kernel allows one,
and each layer has its own pages, more in all than a cache of the device holds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch

from minimsg.kernels import BACKENDS, choose
from minimsg.kernels.bench_model import Decoding
from minimsg.kernels.bench_steps import CASES, QWEN3_0_6B, Heads, Step, draw, in_float64, with_plan
from minimsg.kernels.capture import cuda_graph
from minimsg.kernels.contract import Backend
from minimsg.kernels.peaks import Peaks, measure_peaks, seconds
from minimsg.kernels.triton_paged import Backend as TritonBackend
from minimsg.machine import machine

GOALS = {"decode": 0.8, "prefill": 0.6, "model": 0.7}  # shares of the limits, on CUDA
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
TOLERANCES = {  # weights and results are rounded to the format; values are up to 4
    torch.float32: 1e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}
CACHE_BYTES = 512 << 20  # keys and values of all timed layers: several times any L2
MAX_LAYERS = 64

Row = dict[str, str | float]


@dataclass(frozen=True)
class Shapes:
    """What is measured."""

    heads: Heads = QWEN3_0_6B
    contexts: tuple[int, ...] = (256, 2048, 8192)
    batches: tuple[int, ...] = (1, 8, 32)
    prompts: tuple[int, ...] = (512, 2048, 8192)
    model_context: int = 1024
    cache_bytes: int = CACHE_BYTES


QUICK = Shapes(Heads(4, 2, 64), (64,), (1, 2), (64,), model_context=32, cache_bytes=1)


@dataclass(frozen=True)
class Target:
    """What is measured on."""

    kernel: Backend
    device: torch.device
    dtype: torch.dtype
    peaks: Peaks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 if a kernel is wrong."""
    options = _options().parse_args(arguments)
    device, dtype = torch.device(options.device), DTYPES[options.dtype]
    if device.type == "cuda":
        torch.cuda.set_device(device)
    shapes = QUICK if options.quick else Shapes()
    kernel = choose(device=device, dtype=dtype, head_dim=shapes.heads.size, name=options.kernel)
    report = {"accuracy": list(accuracy(device))}
    _show("accuracy", report["accuracy"])
    is_right = all(row["is_right"] for row in report["accuracy"])
    if is_right:
        peaks = measure_peaks(device, dtype, quick=options.quick)
        target = Target(kernel, device, dtype, peaks)
        report["peaks"] = [vars(peaks)]
        report["decode"] = list(decode(target, shapes))
        report["prefill"] = list(prefill(target, shapes))
        report["model"] = list(model(target, shapes, quick=options.quick))
        for name in ("peaks", *GOALS):
            _show(name, report[name])
    if options.json:
        facts = {"device": _name(device), "torch": torch.__version__, "kernel": kernel.name}
        whole = {**facts, "dtype": options.dtype, "goals": GOALS, **report}
        options.json.write_text(json.dumps(whole, indent=1) + "\n")
    return 0 if is_right else 1


def accuracy(device: torch.device, backends: Sequence[str] = BACKENDS) -> Iterator[Row]:
    """The largest difference from float64 of each backend that supports the device."""
    for module in backends:
        for dtype in DTYPES.values():
            backend: Backend = import_module(module).Backend()
            for case in CASES:
                if backend.supports(device=device, dtype=dtype, head_dim=case.heads.size) is None:
                    step = draw(case.heads, case.contexts, case.new, dtype, device)
                    result = step.attend(backend, case.window).double()
                    error = float((result - in_float64(step, case.window)).abs().max())
                    yield {
                        "kernel": backend.name,
                        "dtype": str(dtype),
                        "case": case.name,
                        "max_error": error,
                        "is_right": error <= TOLERANCES[dtype],  # NaN is not
                    }


def decode(target: Target, shapes: Shapes) -> Iterator[Row]:
    """Attention of one new token a sequence: how fast keys and values are read."""
    heads = shapes.heads
    for context in shapes.contexts:
        for batch in shapes.batches:
            layer_bytes = 2 * batch * context * heads.kv * heads.size * target.dtype.itemsize
            layers = min(MAX_LAYERS, -(-shapes.cache_bytes // layer_bytes))
            contexts, new = [context] * batch, [1] * batch
            step = draw(heads, contexts, new, target.dtype, target.device, layers)
            took = _seconds(target, step) / layers
            reached = layer_bytes / took
            yield {
                "batch": batch,
                "context": context,
                "microseconds": took * 1e6,
                "gb_per_s": reached / 1e9,
                "share": reached / target.peaks.bytes_per_s,
            }


def prefill(target: Target, shapes: Shapes) -> Iterator[Row]:
    """Causal attention of one prompt: multiplications and additions that its softmax needs."""
    heads = shapes.heads
    for tokens in shapes.prompts:
        pairs = tokens * (tokens + 1) // 2
        flop = 4 * heads.query * heads.size * pairs  # a product with keys, one with values
        step = draw(heads, [tokens], [tokens], target.dtype, target.device)
        reached = flop / _seconds(target, step)
        yield {
            "tokens": tokens,
            "tflop_per_s": reached / 1e12,
            "share": reached / target.peaks.flop_per_s,
        }


def model(target: Target, shapes: Shapes, *, quick: bool) -> Iterator[Row]:
    """Steps of a whole model, beside the time that reading its bytes takes."""
    decoding = Decoding(target.kernel, target.dtype, target.device, quick=quick)
    for batch in shapes.batches:
        yield {**decoding.measure(batch, shapes.model_context, target.peaks)}


def _seconds(target: Target, step: Step) -> float:
    """Of all layers of `step`; as a graph where there can be one, as an engine decodes."""
    if target.device.type == "cuda" and isinstance(target.kernel, TritonBackend):
        planned = with_plan(step)
        return seconds(cuda_graph(lambda: planned.attend(target.kernel)).replay, target.device)
    return seconds(lambda: step.attend(target.kernel), target.device)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m minimsg.kernels.bench", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1 ...")
    parser.add_argument("--dtype", default="bfloat16", choices=DTYPES)
    parser.add_argument("--kernel", help="default: the one that an engine would take")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--quick", action="store_true", help="small shapes; says that it works")
    return parser


def _show(name: str, rows: Sequence[Row]) -> None:
    goal = f" (goal on CUDA: share {GOALS[name]})" if name in GOALS else ""
    print(f"{name}{goal}")
    for row in rows:
        figures = (f"{key} {_text(value)}" for key, value in row.items())
        print("  " + ", ".join(figures), flush=True)


def _text(value: str | float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else machine().cpu


if __name__ == "__main__":
    sys.exit(main())
