"""Failures that real servers have now and then: busy, broken off, slow.

    overloaded:0.2     one request in five is answered 529, with retry-after
    limited:0.2        one in five 429
    broken:0.1         one in ten 500
    drop@event:5       a stream breaks off before its fifth event
    error@event:5      ... ends with an error event there
    slow               an event every 0.2 s; `slow:1`: every second

Several are joined by commas. Chance has a seed of its own, so that a run can be repeated.
Knows words and numbers; `proxy.py` does what they say.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from minimsg.errors import ConfigError

STATUSES: Final = {
    "limited": (429, "rate_limit_error"),
    "broken": (500, "api_error"),
    "overloaded": (529, "overloaded_error"),
}
SLOW_S: Final = 0.2


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and how often."""

    rates: dict[str, float] = field(default_factory=dict)  # a name of STATUSES -> 0 to 1
    drop_at: int | None = None  # the number of an event, from 1
    error_at: int | None = None
    slow_s: float = 0.0
    # Of a seed with which one in five fails soon: with 0 the first 25 requests would not.
    chance: random.Random = field(default_factory=lambda: random.Random(2))

    def status(self) -> tuple[int, str] | None:
        """The status and type of the error that the next request is answered with, if any."""
        for name, rate in self.rates.items():
            if self.chance.random() < rate:
                return STATUSES[name]
        return None


def parse_faults(text: str) -> Faults:
    """Read `overloaded:0.2,drop@event:5,slow`. Raises ConfigError."""
    rates: dict[str, float] = {}
    drop_at = error_at = None
    slow_s = 0.0
    for part in filter(None, text.split(",")):
        name, _, value = part.strip().partition(":")
        if name in STATUSES:
            rates[name] = _number(part, value, most=1.0)
        elif name == "drop@event":
            drop_at = int(_number(part, value))
        elif name == "error@event":
            error_at = int(_number(part, value))
        elif name == "slow":
            slow_s = _number(part, value) if value else SLOW_S
        else:
            known = ", ".join([*STATUSES, "drop@event", "error@event", "slow"])
            raise ConfigError(f"no fault is called {name!r}; there are {known}")
    return Faults(rates, drop_at, error_at, slow_s)


def _number(part: str, value: str, most: float = 1e6) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise ConfigError(f"{part!r} wants a number from 0 to {most:g} after its colon")
    return number
