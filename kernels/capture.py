"""A computation that a device can be told to do again: a CUDA graph, or what stands in for it.

Knows torch only. `engine/graphs.py` captures decode steps, `bench.py` what it measures.
Not yet run on CUDA hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Captured:
    """What `replay` computes again, into the same `result`."""

    result: Tensor
    replay: Callable[[], object]


Capture = Callable[[Callable[[], Tensor]], Captured]


def cuda_graph(compute: Callable[[], Tensor]) -> Captured:
    """A graph of `compute`, after a run that compiles its kernels and makes its buffers.

    It may read no Python number that changes, and tensors must stay where they are
    (https://pytorch.org/docs/stable/notes/cuda.html, "CUDA Graphs").
    """
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        compute()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute()
    return Captured(result, graph.replay)
