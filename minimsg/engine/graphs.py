"""Decode steps replayed from CUDA graphs, so that the device does not wait for Python.

A step of small operations on a fast GPU is bound by launching them one by one; a graph
launches all at once (`kernels/capture.py`), but always with the same shapes and the same
memory. So a batch is padded to a size that was captured, and its numbers are copied to where
the graph reads them. Padding has length 0 and slot -1: the kernel stores it nowhere, and it
attends to nothing.

Only `kernels/triton_paged.py` reads everything that changes from the device, so only it is
captured. Not yet run on CUDA hardware; the tests replay without a graph.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from minimsg.engine.cache import PagedKVCache
from minimsg.kernels.capture import Capture, Captured, cuda_graph
from minimsg.kernels.triton_paged import Backend
from minimsg.kernels.triton_plan import Plan, PlannedLayout, power_of_two
from minimsg.models.contract import Inputs, Model

MAX_ROWS = 256  # of a captured batch; beyond, the operations are large enough
MIN_COLUMNS = 256  # pages of a sequence, 4096 tokens of 16 a page: fewer graphs for short ones

logger = logging.getLogger("minimsg")


class DecodeGraphs:
    """The captured steps of one model and its cache, each made when it is first wanted."""

    def __init__(
        self, model: Model, cache: PagedKVCache, device: torch.device, capture: Capture
    ) -> None:
        self._model, self._cache, self._device, self._capture = model, cache, device, capture
        self._steps: dict[tuple[int, int], tuple[StaticStep, Captured]] = {}  # by size

    def can_run(self, inputs: Inputs) -> bool:
        """Whether each sequence has one new token, which samples, and there are not too many.

        None may have images: what a graph computes has one rotary position a token. Nor may
        anybody look on: nothing of Python is in a graph.
        """
        if inputs.axes is not None or inputs.watch is not None:
            return False
        num = len(inputs.layout.context_lens)
        return num <= MAX_ROWS and len(inputs.ids) == len(inputs.sample_rows) == num

    def run(self, inputs: Inputs) -> Tensor:
        """What the model gives, `(B, V)`; it is overwritten by the next call."""
        num, num_pages = inputs.layout.page_tables.shape
        size = padded_size(num, num_pages)
        if size in self._steps:
            step, captured = self._steps[size]
            step.fill(inputs)
        else:
            step = StaticStep(*size, self._cache.page_size, self._device)
            step.fill(inputs)
            with torch.cuda.device(inputs.ids.get_device()):  # -1, the CPU's, changes nothing
                captured = self._capture(lambda: step.compute(self._model, self._cache))
            self._steps[size] = step, captured
            logger.info("captured a decode step of %d rows, %d pages each", *size)
        captured.replay()
        return captured.result[:num]


class StaticStep:
    """The inputs of a decode step, in tensors that stay where they are."""

    def __init__(self, rows: int, columns: int, page_size: int, device: torch.device) -> None:
        padding = torch.tensor([0, 0, -1], device=device)  # id, position, slot
        self.padding = padding[:, None].expand(3, rows)
        self.numbers = self.padding.clone()
        ids, positions, slots = self.numbers
        tables = torch.zeros(rows, columns, dtype=torch.int64, device=device)
        starts = torch.arange(rows + 1, dtype=torch.int32, device=device)
        self.plan = Plan(
            starts=starts,
            lengths=torch.zeros(rows, dtype=torch.int32, device=device),
            decoding=starts[:-1],
            tiles=starts.new_empty(0, 2),
            longest=columns * page_size,
        )
        longest = [self.plan.longest] * rows
        layout = PlannedLayout(list(range(rows + 1)), longest, tables, slots, self.plan)
        self.inputs = Inputs(ids, positions, torch.arange(rows, device=device), layout)

    def fill(self, inputs: Inputs) -> None:
        """Take over a step that has no more rows, nor longer page tables."""
        num, num_pages = inputs.layout.page_tables.shape
        self.numbers.copy_(self.padding)
        self.inputs.ids[:num] = inputs.ids
        self.inputs.positions[:num] = inputs.positions
        self.inputs.layout.slots[:num] = inputs.layout.slots
        self.inputs.layout.page_tables[:num, :num_pages] = inputs.layout.page_tables

    def compute(self, model: Model, cache: PagedKVCache) -> Tensor:
        """Logits `(rows, V)` float32. What is captured: it reads no Python number that changes."""
        is_padding = self.inputs.layout.slots < 0
        self.plan.lengths.copy_((self.inputs.positions + 1).masked_fill(is_padding, 0))
        return model(self.inputs, cache.layers)


def decode_graphs(model: Model, cache: PagedKVCache, device: torch.device) -> DecodeGraphs | None:
    """Graphs for `model`, or None where its device or its kernel has none."""
    backend = getattr(model, "backend", None)  # the decoders of `models/layers.py` have one
    if device.type != "cuda" or not isinstance(backend, Backend):
        return None
    return DecodeGraphs(model, cache, device, cuda_graph)


def padded_size(num_rows: int, num_pages: int) -> tuple[int, int]:
    """Rows of the captured step, and columns of its page table: powers of two."""
    return power_of_two(num_rows), max(MIN_COLUMNS, power_of_two(num_pages))
