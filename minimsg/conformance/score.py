"""How good the suite is: of servers that do one thing wrong, how many it finds, and names.

A run against a server that behaves says which cases fail anyway. For each mutant the cases
of its topic are played; if none fails that passed before, all are. A mutant is caught by any
case, and named by one of its topic. Knows URLs and names of mutants; how one is switched on
is the caller's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from minimsg.conformance.case import Case
from minimsg.conformance.runner import Unreachable, run
from minimsg.conformance.settings import Settings
from minimsg.conformance.verdict import Run, Verdict

SHOWN: Final = 3  # cases named for one mutant


@dataclass(frozen=True)
class Catch:
    """What the suite said of one mutant."""

    name: str
    topic: str
    by: tuple[str, ...]  # ids of cases
    is_named: bool

    @property
    def line(self) -> str:
        """In words."""
        if not self.by:
            return f"MISSED  {self.name}"
        said = "caught" if self.is_named else "unnamed"
        return f"{said:<7} {self.name}: {', '.join(self.by[:SHOWN])}"


async def score(
    cases: Sequence[Case],
    settings: Settings,
    topics: Mapping[str, str],
    switch: Callable[[str | None], None],
) -> AsyncIterator[Catch]:
    """Try each mutant of `topics` (name -> pattern); `switch` turns one on, None all off."""
    switch(None)
    sound = _failing(await run(cases, settings))
    for name, topic in topics.items():
        switch(name)
        near = [case for case in cases if fnmatchcase(case.id, topic)]
        found = await _new(near, settings, sound) if near else ()
        yield Catch(name, topic, found or await _new(cases, settings, sound), bool(found))


async def _new(cases: Sequence[Case], settings: Settings, sound: frozenset[str]) -> tuple[str, ...]:
    try:
        failing = _failing(await run(cases, settings))
    except Unreachable:  # not even the plainest request is answered
        return ("(no answer)",)
    return tuple(id for id in sorted(failing) if id not in sound)


def _failing(done: Run) -> frozenset[str]:
    return frozenset(r.id for r in done.results if r.verdict == Verdict.FAIL)
