"""Thinking ends at its budget: the closing tag is forced, and the answer goes on.

Every id that is committed while the model thinks counts, tags do not; several parts of
thinking share one budget. Knows no grammar; thinking inside one: `grammars.py`. Goes
forward only, as its reading does (`hooks.py`, Restarting).
"""

from __future__ import annotations

from collections.abc import Sequence

from minimsg.constrain.reading import Reading


class BudgetHook:
    """Forces `closing_ids` once `budget` ids have been thought."""

    name = "thinking budget"

    def __init__(self, reading: Reading, closing_ids: Sequence[int], budget: int) -> None:
        assert closing_ids
        self._reading = reading
        self._closing_ids = closing_ids
        self._budget = budget
        self._num_thought = 0
        self._num_closing = 0  # ids of the closing tag that were forced

    def mask(self) -> None:
        return None

    def forced(self) -> int | None:
        if not self._reading.is_thinking or self._num_thought < self._budget:
            return None
        return self._closing_ids[self._num_closing]

    def advance(self, id: int) -> None:
        is_closing = self.forced() is not None
        was_thinking = self._reading.is_thinking
        self._reading.push(id)
        is_thinking = self._reading.is_thinking
        self._num_closing = self._num_closing + 1 if is_closing and is_thinking else 0
        self._num_thought += was_thinking and is_thinking and not is_closing
