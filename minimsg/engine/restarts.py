"""When an engine that failed is started again, and when no more.

Once is bad luck; again and again within minutes is a fault that a restart does not cure,
and whoever watches the process shall know. Knows times only; `worker.py` asks.
"""

from __future__ import annotations


class Restarts:
    """The failures of one engine: pauses that double, until there were too many of them."""

    def __init__(
        self, first_pause_s: float = 1.0, max_failures: int = 5, within_s: float = 600.0
    ) -> None:
        """At the failure that makes `max_failures` in `within_s` seconds it is over."""
        self._first_pause_s = first_pause_s
        self._max_failures = max_failures
        self._within_s = within_s
        self._failures: list[float] = []

    def pause_s(self, now: float) -> float | None:
        """Note a failure; how long to wait before the restart, None for no restart."""
        recent = [each for each in self._failures if now - each < self._within_s]
        self._failures = [*recent, now]
        if len(self._failures) >= self._max_failures:
            return None
        return self._first_pause_s * 2.0 ** len(recent)
