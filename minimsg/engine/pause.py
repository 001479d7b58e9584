"""Whether the engine may take its next step: somebody who looks on may hold it for a while.

A hold has an end, and whoever holds has to ask again before it: then a page that was closed
holds nothing up for longer. Lives in the engine's thread; any thread may read it. Knows times
only; `worker.py` asks.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

MAX_HOLD_S: Final = 30.0


class Pause:
    """A hold on the engine, or none. Invariant: it ends within `MAX_HOLD_S` of the last word."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self._num_steps = 0  # that may be taken nevertheless

    @property
    def left_s(self) -> float:
        """Seconds until the engine goes on by itself; 0 if nobody holds it."""
        return max(0.0, self._until - self._clock())

    @property
    def may_step(self) -> bool:
        """Whether a step may be taken now."""
        return self._num_steps > 0 or self.left_s == 0

    def hold(self, num_steps: int = 0) -> None:
        """Hold the engine, or hold it longer, but for the next `num_steps` steps."""
        self._until = self._clock() + MAX_HOLD_S
        self._num_steps += num_steps

    def release(self) -> None:
        """Let it go on."""
        self._until, self._num_steps = 0.0, 0

    def drop_steps(self) -> None:
        """There is nothing to step through: what comes later is held from its first step."""
        self._num_steps = 0

    def note_step(self) -> None:
        """A step was taken."""
        self._num_steps = max(0, self._num_steps - 1)
