"""All mutants, by name."""

from __future__ import annotations

from typing import Final

from minimsg.errors import ConfigError
from minimsg.misbehave import (
    answers,
    blocks,
    checks,
    cited,
    cited_streams,
    deltas,
    demands,
    envelopes,
    errors,
    frames,
    objects,
    order,
    reading,
    requests,
    turns,
    usage,
    wishes,
)
from minimsg.misbehave.mutant import Mutant

MUTANTS: Final[dict[str, Mutant]] = {
    mutant.name: mutant
    for module in (
        order,
        envelopes,
        deltas,
        frames,
        answers,
        usage,
        blocks,
        errors,
        requests,
        turns,
        reading,
        demands,
        checks,
        objects,
        wishes,
        cited,
        cited_streams,
    )
    for mutant in module.MUTANTS
}


def find(name: str) -> Mutant:
    """The mutant of that name. Raises ConfigError."""
    if name not in MUTANTS:
        raise ConfigError(f"no mutant is called {name!r}; there are {', '.join(MUTANTS)}")
    return MUTANTS[name]
