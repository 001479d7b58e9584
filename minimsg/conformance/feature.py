"""What a server can do, found out by asking it: features, and the four ways to have one.

A feature is one request of `cases/features.toml`. Cases that need a feature which is refused
cleanly are skipped; where it is wrong they run, and say so. Knows what the words mean;
`player.py` asks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from minimsg.conformance.case import NAME_PATTERN, Expression, Step, Table, Text
from minimsg.conformance.settings import Version


class State(StrEnum):
    """How a server took the request."""

    OK = "ok"
    REFUSED = "refused cleanly"  # 4xx or 501
    IGNORED = "silently ignored"  # 200, and nothing came of it
    WRONG = "wrong"  # 5xx, no answer, or nonsense


class Feature(Table):
    """One thing that servers differ in. `works` holds where it had its effect."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    title: Text
    version: Version | None = None
    step: Step = Step()
    works: tuple[Expression, ...] = ()
    optional: bool = False  # ignoring it in silence is legal: cases are then skipped, too


REFUSALS: Final = frozenset({*range(400, 429), *range(430, 500), 501})
