"""Spans of sequences, flattened to the batch that one step runs.

Knows ids, positions and page tables; who got how many tokens is the scheduler's business.
"""

from __future__ import annotations

from minimsg.engine.types import Batch, Sequence


def build_batch(spans: list[tuple[Sequence, int]], page_size: int) -> Batch:
    """Flatten (sequence, number of its next ids) pairs into one batch.

    A sequence samples in the step that computes the last of its known ids.
    """
    batch = Batch([], [], [], [], [0], [], [], [], [])
    for sequence, count in spans:
        start, end = sequence.num_computed, sequence.num_computed + count
        batch.request_ids.append(sequence.request.id)
        batch.input_ids.extend(sequence.ids[start:end])
        batch.positions.extend(range(start, end))
        batch.slots.extend(
            sequence.page_table[position // page_size] * page_size + position % page_size
            for position in range(start, end)
        )
        batch.query_starts.append(len(batch.input_ids))
        batch.context_lens.append(end)
        batch.page_tables.append(sequence.page_table[: -(-end // page_size)])
        if end == len(sequence.ids):
            batch.sample_rows.append(len(batch.input_ids) - 1)
            batch.sample_ids.append(sequence.request.id)
    return batch
