"""Spans of sequences, flattened to the batch that one step runs.

Knows ids, positions and page tables; who got how many tokens is the scheduler's business.
"""

from __future__ import annotations

from collections.abc import Iterator

from minimsg.engine.places import axes_of
from minimsg.engine.types import Batch, GenerationRequest, PictureRows, Sequence


def build_batch(spans: list[tuple[Sequence, int]], page_size: int) -> Batch:
    """Flatten (sequence, number of its next ids) pairs into one batch.

    A sequence samples in the step that computes the last of its known ids: after that, and
    after each of its drafts.
    """
    batch = Batch([], [], [], [], [0], [], [], [], [])
    for sequence, count in spans:
        start, request_id = sequence.num_computed, sequence.request.id
        ids = sequence.ids[start : start + count]
        num_samples = 0
        if start + count == len(sequence.ids):
            ids += sequence.drafts
            num_samples = 1 + len(sequence.drafts)
        end = start + len(ids)
        batch.request_ids.append(request_id)
        batch.input_ids.extend(ids)
        batch.positions.extend(range(start, end))
        batch.slots.extend(
            sequence.page_table[position // page_size] * page_size + position % page_size
            for position in range(start, end)
        )
        num_rows = len(batch.input_ids)
        batch.query_starts.append(num_rows)
        batch.context_lens.append(end)
        batch.page_tables.append(sequence.page_table[: -(-end // page_size)])
        batch.sample_rows.extend(range(num_rows - num_samples, num_rows))
        batch.sample_ids.extend([request_id] * num_samples)
    if any(sequence.request.images for sequence, _ in spans):
        _add_pictures(batch, [sequence for sequence, _ in spans])
    return batch


def _add_pictures(batch: Batch, sequences: list[Sequence]) -> None:
    """Say which rows stand for images, and where all rows stand among them."""
    batch.axes.extend([[], [], []])
    parts = zip(sequences, batch.rows.values(), batch.spans.values(), strict=True)
    for sequence, rows, span in parts:
        axes = axes_of(sequence.request.images, span.start, span.stop)
        for axis, positions in zip(batch.axes, axes, strict=True):
            axis.extend(positions)
        batch.pictures.extend(_pictures(sequence.request, span, rows.start))


def _pictures(request: GenerationRequest, span: range, row: int) -> Iterator[PictureRows]:
    """What the positions of `span`, which have the rows from `row` on, show of images."""
    for image in request.images:
        start, stop = max(span.start, image.start), min(span.stop, image.stop)
        if start < stop:
            first, count = start - image.start, stop - start
            yield PictureRows(request.tenant, image, row + start - span.start, first, count)
