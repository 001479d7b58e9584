"""A model that says what its config tells it, through the same cache as a real one.

For tests of everything around a model, ours and those of clients. It has no weights: it
caches the ids themselves, reads its whole context back through the page table, finds
where the present turn began, and puts all probability on the next id of the tape. A
wrong page, slot or position therefore gives a wrong text. The tapes: `script.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from minimsg.kernels.contract import Backend, Layout, Pages
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Inputs, PagedSpec
from minimsg.models.script import BYTES_PER_ID

UNLIKELY = -100.0  # a logit: e**-100 is zero beside 1, and not infinite


class Model(nn.Module):
    def __init__(self, config: ModelConfig, backend: Backend) -> None:
        super().__init__()
        assert config.script is not None
        self.script = config.script
        self.vocab_size = config.vocab_size
        self.cache_specs = [PagedSpec(num_kv_heads=1, head_dim=BYTES_PER_ID)]

    def forward(self, inputs: Inputs, cache: Sequence[Pages]) -> Tensor:
        pages, layout = cache[0].key, inputs.layout
        pages.view(-1, BYTES_PER_ID)[layout.slots] = _to_bytes(inputs.ids).to(pages.dtype)
        rows = inputs.sample_rows.tolist()
        logits = torch.full((len(rows), self.vocab_size), UNLIKELY, device=pages.device)
        for logit, row in zip(logits, rows, strict=True):
            logit[self._next_id(_context(pages, layout, row))] = 0.0
        return logits

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {}

    def _next_id(self, context: Tensor) -> int:
        """The tape's id after `context` `(n,)` int64; the end id beyond it, or outside a turn."""
        start = torch.tensor(self.script.start_ids, device=context.device)
        if len(context) < len(start):
            return self.script.end_id
        starts = (context.unfold(0, len(start), 1) == start).all(dim=1).nonzero().flatten()
        if len(starts) == 0:
            return self.script.end_id
        tape = self.script.tapes[min(len(starts), len(self.script.tapes)) - 1]
        cursor = len(context) - (int(starts[-1]) + len(start))
        return tape[cursor] if cursor < len(tape) else self.script.end_id


def _to_bytes(ids: Tensor) -> Tensor:
    """`(n,)` int64 to `(n, 4)`, lowest byte first."""
    return torch.stack([ids >> 8 * place & 0xFF for place in range(BYTES_PER_ID)], dim=1)


def _context(pages: Tensor, layout: Layout, row: int) -> Tensor:
    """All ids that the token of `row` sees, itself the last, read from its pages: `(n,)` int64."""
    sequence = bisect_right(layout.query_starts, row) - 1
    rows_after = layout.query_starts[sequence + 1] - 1 - row
    length = layout.context_lens[sequence] - rows_after
    places = torch.arange(BYTES_PER_ID, device=pages.device) * 8
    cached = pages[layout.page_tables[sequence]].view(-1, BYTES_PER_ID)[:length]
    return (cached.long() << places).sum(dim=1)
