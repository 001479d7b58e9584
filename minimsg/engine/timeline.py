"""What each step computed of the requests that are traced, for whoever looks on.

Knows batches and the time; what is made of it is in `server/recording.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic

from minimsg.engine.types import Batch, Change, Sequence, Stepped


class Timeline:
    """The steps of one scheduler, the latest in more detail."""

    def __init__(
        self, page_size: int, layer_errors: Callable[[], tuple[float, ...] | None] = lambda: None
    ) -> None:
        """`layer_errors`: those of the latest step, if its kernel was checked."""
        self.num_steps = 0
        self._page_size = page_size
        self._layer_errors = layer_errors
        self._started = 0.0
        self._changes: dict[str, Change | None] = {}  # of the traced ones, before the latest step

    def begin(self, sequences: Iterable[Sequence]) -> None:
        """A step of these begins."""
        self.num_steps += 1
        self._started = monotonic()
        self._changes.clear()
        for sequence in sequences:
            if sequence.request.is_traced:
                self._changes[sequence.request.id], sequence.change = sequence.change, None

    def told(self, batch: Batch) -> list[Stepped]:
        """The latest step, or a part of it, as each traced request sees it, now that it is over."""
        if not self._changes:  # nobody looks on
            return []
        took_s = monotonic() - self._started
        return [
            self._stepped(batch, index, took_s)
            for index, request_id in enumerate(batch.request_ids)
            if request_id in self._changes
        ]

    def _stepped(self, batch: Batch, index: int, took_s: float) -> Stepped:
        request_id, stop = batch.request_ids[index], batch.context_lens[index]
        start = stop - (batch.query_starts[index + 1] - batch.query_starts[index])
        change = self._changes[request_id]
        return Stepped(
            request_id=request_id,
            number=self.num_steps,
            started=self._started,
            took_s=took_s,
            start=start,
            stop=stop,
            num_sequences=len(batch.request_ids),
            num_tokens=len(batch.input_ids),
            pages=batch.page_tables[index][0 if change else start // self._page_size :],
            change=change,
            layer_errors=self._layer_errors(),
        )
