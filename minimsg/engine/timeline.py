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
        took_s, layer_errors = monotonic() - self._started, self._layer_errors()
        changes = self._changes
        return [
            Stepped(
                request_id=request_id,
                number=self.num_steps,
                started=self._started,
                took_s=took_s,
                start=span.start,
                stop=span.stop,
                num_sequences=len(batch.request_ids),
                num_tokens=len(batch.input_ids),
                pages=pages[0 if changes[request_id] else span.start // self._page_size :],
                change=changes[request_id],
                layer_errors=layer_errors,
            )
            for (request_id, span), pages in zip(
                batch.spans.items(), batch.page_tables, strict=True
            )
            if request_id in changes
        ]
