"""Deterministic mode: a step as tiles, each one page of one sequence, padded to all its rows.

A matrix product rounds differently for another number of rows, or for another row of the
same number. Here the token at position p is row `p % page_size` of a product of `page_size`
rows, always; a row that samples goes through the head alone. With the kernel
`kernels/tiled.py` every operation that a token passes through then has a shape and a row
that follow from its position. So tokens and log probabilities are bit-equal alone and in
any batch, chunked, preempted, or with a prefix from the cache: pages hold the same bits
however they were filled.

Whoever calls must `sample` one row at a time (`sampler.py`), and keep the threads of torch
as they are. Knows batches; the scheduler and the model know nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from minimsg.engine.runner import Runner
from minimsg.engine.types import Batch

PADDING = 0  # any id of the vocabulary: no row reads another's


class TiledRunner(Runner):
    """A runner that computes one tile at a time.

    No sequence may get the last page of the cache: padding is stored there.
    """

    def _compute(self, batch: Batch) -> Tensor:
        torch.get_num_threads()  # makes a new thread take over what was set for the process
        cache = self.cache
        cut = partial(tiles, page_size=cache.page_size, scratch_page=cache.num_pages - 1)
        parts = [tile for part in batch.split() for tile in cut(part)]
        return torch.cat([super(TiledRunner, self)._compute(part) for part in parts])


def tiles(batch: Batch, page_size: int, scratch_page: int) -> Iterator[Batch]:
    """Cut a batch of one sequence at the ends of its pages, and pad each part to a whole page.

    The sequence owns its rows by `query_starts`; the others belong to nobody.
    """
    assert len(batch.request_ids) == 1
    start = batch.context_lens[0] - len(batch.input_ids)  # position of the first row
    for page in range(start // page_size, -(-batch.context_lens[0] // page_size)):
        first = max(0, page * page_size - start)
        rows = range(first, min(len(batch.input_ids), (page + 1) * page_size - start))
        yield _tile(batch, rows, page, start + first - page * page_size, page_size, scratch_page)


def _tile(
    batch: Batch, rows: range, page: int, inside: int, page_size: int, scratch_page: int
) -> Batch:
    """Rows `rows` of a batch of one sequence, in the rows of `page` from `inside` on."""
    own, place = slice(rows.start, rows.stop), slice(inside, inside + len(rows))
    input_ids = [PADDING] * page_size
    positions = list(range(page * page_size, (page + 1) * page_size))
    slots = list(range(scratch_page * page_size, (scratch_page + 1) * page_size))
    input_ids[place] = batch.input_ids[own]
    positions[place] = batch.positions[own]
    slots[place] = batch.slots[own]
    axes = [list(positions) for _ in batch.axes]
    for axis, given in zip(axes, batch.axes, strict=True):
        axis[place] = given[own]
    sampled = [row for row in batch.sample_rows if row in rows]
    return Batch(
        request_ids=batch.request_ids,
        input_ids=input_ids,
        positions=positions,
        slots=slots,
        query_starts=[place.start, place.stop],
        context_lens=[page * page_size + place.stop],
        page_tables=[batch.page_tables[0][: page + 1]],
        sample_rows=[inside + row - rows.start for row in sampled],
        sample_ids=batch.sample_ids[: len(sampled)],
        axes=axes,
        pictures=batch.pictures_within(rows, inside),
    )
