"""A batch of ints to tensors, through the model, to the logits of the rows that sample.

The only place where host lists become device tensors. Knows no request and no limit;
the layout of pages is explained in `kernels/contract.py`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from minimsg.engine.cache import PagedKVCache
from minimsg.engine.encodings import Encodings
from minimsg.engine.graphs import decode_graphs
from minimsg.engine.kernel_check import KernelCheck
from minimsg.engine.types import Batch
from minimsg.engine.undo import Journal
from minimsg.engine.watching import Hooks
from minimsg.kernels.contract import Layout
from minimsg.models.contract import Inputs, Model, Sight, Watch


class Runner:
    """A model and the cache that its layers fill."""

    def __init__(self, model: Model, cache: PagedKVCache, device: torch.device) -> None:
        self.model = model
        self.cache = cache
        self.device = device
        self.graphs = decode_graphs(model, cache, device)
        self.encodings = Encodings(model)
        self.hooks = Hooks(model)
        self.check: KernelCheck | None = None  # of the kernel beside the reference
        self.journal: Journal | None = None  # while steps are kept

    @torch.inference_mode()
    def run(self, batch: Batch) -> Tensor:
        """Logits `(S, V)` float32; keys and values of the batch's T tokens are in the cache."""
        if not batch.input_ids:
            return torch.empty(0, self.model.vocab_size, device=self.device)
        if self.check is not None:
            self.check.begin()
        return self._compute(batch)

    def layer_errors(self) -> tuple[float, ...] | None:
        """How far the latest step was from the reference, if that was checked."""
        return None if self.check is None else self.check.step_errors()

    def _compute(self, batch: Batch) -> Tensor:
        """What `run` gives, of a batch that has tokens."""
        if self.journal is not None:
            self.journal.note(batch)
        inputs = self._inputs(batch)
        if self.graphs is not None and self.graphs.can_run(inputs):
            return self.graphs.run(inputs)
        return self.model(inputs, self.cache.layers)

    def _inputs(self, batch: Batch) -> Inputs:
        num_pages = max(len(pages) for pages in batch.page_tables)
        padded = [pages + [0] * (num_pages - len(pages)) for pages in batch.page_tables]
        layout = Layout(
            query_starts=batch.query_starts,
            context_lens=batch.context_lens,
            page_tables=self._tensor(padded),
            slots=self._tensor(batch.slots),
        )
        return Inputs(
            ids=self._tensor(batch.input_ids),
            positions=self._tensor(batch.positions),
            sample_rows=self._tensor(batch.sample_rows),
            layout=layout,
            axes=self._tensor(batch.axes) if batch.axes else None,
            sight=self._sight(batch) if batch.pictures else None,
            watch=self._watch(batch),
        )

    def _watch(self, batch: Batch) -> Watch | None:
        """Who looks at a batch; where functions do that may change it, nothing is checked."""
        watch = self.hooks.watch(batch)
        return self.check.watch() if watch is None and self.check is not None else watch

    def _sight(self, batch: Batch) -> Sight:
        """What the batch shows of images, seen now or before."""
        rows: list[int] = []
        features: list[Tensor] = []
        for part in batch.pictures:
            rows += range(part.row, part.row + part.count)
            whole = self.encodings.of(part.tenant, part.image)
            features.append(whole[:, part.first : part.first + part.count])
        return Sight(self._tensor(rows), torch.cat(features, dim=1))

    def _tensor(self, values: list[int] | list[list[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)
