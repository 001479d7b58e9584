"""What one rendering of a chat template may cost: steps, seconds, characters.

A template comes with a model and is somebody else's program. Every string and list it
makes is paid for in characters, and paid for *before* it is made where it could be much
longer than what it is made of (`growth.py`), so that no operation can fill the memory.
`sandbox.py` puts the meters in. Knows nothing of templates; bounds are in `limits.py`.
"""

from __future__ import annotations

import time
from typing import Final

import jinja2

from minimsg.limits import LIMITS, Limits

ELEMENT_CHARS: Final = 16  # what an element of a list is charged: a pointer and a small object
PASSES: Final = 32  # times that a template may copy all it was given; the real ones need 10


class OverBudget(jinja2.TemplateError):
    """The template has used up what it was given."""


class Budget:
    """The meters of one rendering. Invariant: what was spent is within the limits."""

    def __init__(self, input_chars: int, limits: Limits = LIMITS) -> None:
        self._steps_left = self._max_steps = limits.template_steps
        self._chars_left = self._max_chars = max(limits.template_output_chars, PASSES * input_chars)
        self._time_s = limits.template_time_s
        self._deadline = time.monotonic() + limits.template_time_s

    def step(self) -> None:
        """One turn of a loop, or one call of a macro."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise OverBudget(f"takes more than {self._max_steps:,} steps")
        if time.monotonic() > self._deadline:
            raise OverBudget(f"takes more than {self._time_s:g} s")

    def foresee(self, chars: int) -> None:
        """Refuse an operation whose result might have `chars` characters, if that is too many."""
        if chars > self._chars_left:
            raise OverBudget(f"makes more than {self._max_chars:,} characters")

    def spend(self, chars: int) -> None:
        """`chars` characters have been made."""
        self.foresee(chars)
        self._chars_left -= chars

    def admit(self, value: object) -> object:
        """Pay for `value`, the result of an operation, and pass it on."""
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, (list, tuple, dict)):
            self.spend(len(value) * ELEMENT_CHARS)
            self.foresee(weigh(value))
        return value


def weigh(value: object) -> int:
    """About how long `value` would be written out; quick also for lists that share their parts.

    Twenty nested lists that each hold the one before twice take twenty small objects,
    and a million characters as text.
    """
    return _weigh(value, {})


def _weigh(value: object, known: dict[int, int]) -> int:
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, (list, tuple, dict)):
        return 1
    if id(value) not in known:
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        known[id(value)] = ELEMENT_CHARS + sum(_weigh(part, known) for part in parts)
    return known[id(value)]
