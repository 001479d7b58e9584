"""What a step computed of the requests that are traced, for whoever looks on.

Knows batches and the time; what is made of it is in `server/recording.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import monotonic

from minimsg.engine.types import Batch, Change, Stepped


def told(
    batch: Batch, changes: Mapping[str, Change | None], number: int, started: float, page_size: int
) -> Iterator[Stepped]:
    """Step `number` as each request of `changes` sees it, now that it is over."""
    took_s = monotonic() - started
    for index, request_id in enumerate(batch.request_ids):
        if request_id not in changes:
            continue
        stop, change = batch.context_lens[index], changes[request_id]
        start = stop - (batch.query_starts[index + 1] - batch.query_starts[index])
        yield Stepped(
            request_id=request_id,
            number=number,
            started=started,
            took_s=took_s,
            start=start,
            stop=stop,
            num_sequences=len(batch.request_ids),
            num_tokens=len(batch.input_ids),
            pages=batch.page_tables[index][0 if change else start // page_size :],
            change=change,
        )
