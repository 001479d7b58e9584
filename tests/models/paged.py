"""Drives a model through its paged cache by hand, as the engine does, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from minimsg.errors import KernelUnavailable
from minimsg.kernels import choose, names
from minimsg.kernels.contract import Layout, Pages
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Inputs, Model, PagedSpec
from minimsg.models.weights import load_model

PAGE_SIZE = 16
CPU = torch.device("cpu")
NUM_PAGES = 64


def runs_here(kernel: str) -> bool:
    try:
        choose(device=CPU, dtype=torch.float32, head_dim=16, name=kernel)
    except KernelUnavailable:
        return False
    return True


KERNELS = [name for name in names() if runs_here(name)]


def load(folder: Path, kernel: str = "cpu", dtype: torch.dtype = torch.float32) -> Model:
    head_dim = ModelConfig.from_folder(folder).head_dim
    backend = choose(device=CPU, dtype=dtype, head_dim=head_dim, name=kernel)
    return load_model(folder, dtype=dtype, device=CPU, backend=backend)


class PagedRun:
    """Sequences by name over one cache that starts as NaN, their pages in shuffled order."""

    def __init__(self, model: Model, dtype: torch.dtype = torch.float32) -> None:
        self.model = model
        shuffled = torch.randperm(NUM_PAGES, generator=torch.Generator().manual_seed(7))
        self.free: list[int] = shuffled.tolist()
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}
        self.cache = [_dirty_pages(spec, dtype) for spec in model.cache_specs]

    def step(self, new: Mapping[str, list[int]]) -> dict[str, Tensor]:
        """Run new ids of several sequences at once; logits `(t, V)` of each of their tokens."""
        inputs = self.inputs(new)
        starts = inputs.layout.query_starts
        with torch.inference_mode():
            logits = self.model(inputs, self.cache)
        return {name: logits[starts[i] : starts[i + 1]] for i, name in enumerate(new)}

    def inputs(self, new: Mapping[str, list[int]]) -> Inputs:
        """The next step's tensors; takes pages for `new`. Every row is sampled."""
        ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        starts = [0]
        for name, tokens in new.items():
            first = self.lengths.get(name, 0)
            ids += tokens
            positions += range(first, first + len(tokens))
            slots += [self._slot(name, first + i) for i in range(len(tokens))]
            starts.append(len(ids))
            self.lengths[name] = first + len(tokens)
        layout = self._layout(list(new), starts, slots)
        return Inputs(torch.tensor(ids), torch.tensor(positions), torch.arange(len(ids)), layout)

    def _slot(self, name: str, position: int) -> int:
        table = self.tables.setdefault(name, [])
        if position == len(table) * PAGE_SIZE:
            table.append(self.free.pop())
        return table[position // PAGE_SIZE] * PAGE_SIZE + position % PAGE_SIZE

    def _layout(self, names: list[str], starts: list[int], slots: list[int]) -> Layout:
        longest = max(len(self.tables[name]) for name in names)
        tables = [self.tables[name] + [0] * (longest - len(self.tables[name])) for name in names]
        contexts = [self.lengths[name] for name in names]
        return Layout(starts, contexts, torch.tensor(tables), torch.tensor(slots))


def _dirty_pages(spec: PagedSpec, dtype: torch.dtype) -> Pages:
    shape = (NUM_PAGES, PAGE_SIZE, spec.num_kv_heads, spec.head_dim)
    return Pages(*(torch.full(shape, torch.nan, dtype=dtype) for _ in range(2)))
