"""How a case ended, and everything that a report needs to explain it.

Knows results only: who makes them is `runner.py`, who shows them `report.py`, `page.py`,
`junit.py` and `badge.py`. `to_json` is the report on disk, `from_json` reads it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from minimsg.conformance.case import Level

SHOWN_BYTES: Final = 8_000  # of one exchange in a report


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"  # the model or the server's load did not get there
    SKIP = "skip"  # a feature that the case needs is refused cleanly
    EXPECTED = "expected-fail"  # fails, as the baseline says
    STALE = "stale"  # passes, though the baseline says that it fails


@dataclass(frozen=True)
class Line:
    """Some bytes of an exchange, as text, and when they went by."""

    at_s: float
    is_sent: bool
    text: str


@dataclass(frozen=True)
class Failure:
    """What was expected, what came, and how to see it again."""

    step: str
    expected: str
    seen: str
    curl: str
    wire: list[Line]


@dataclass(frozen=True)
class Result:
    """One case, ended."""

    id: str
    title: str
    level: Level
    rule: str
    where: str
    verdict: Verdict
    seconds: float = 0.0
    reason: str = ""  # of a skip, of what is inconclusive, of an entry of the baseline
    failure: Failure | None = None

    @property
    def theme(self) -> str:
        """The first part of the id."""
        return self.id.partition(".")[0]

    @property
    def breaks_the_run(self) -> bool:
        """Whether the run may not count as passed for this."""
        is_rule = self.level in (Level.MUST, Level.SHOULD)
        return self.verdict == Verdict.STALE or (self.verdict == Verdict.FAIL and is_rule)


@dataclass(frozen=True)
class Run:
    """A whole run: against what, how, and what came of it."""

    url: str
    model: str
    server: str  # what the server calls itself, if it does
    profile: str
    version: str
    seed: int
    seconds: float
    suite: str
    has_key: bool = False  # whether it was asked with a key, which no report holds
    features: dict[str, str] = field(default_factory=dict)  # name -> state
    results: list[Result] = field(default_factory=list)

    def counts(self) -> Counter[Verdict]:
        """How many cases ended in each way."""
        return Counter(result.verdict for result in self.results)

    @property
    def broken(self) -> list[Result]:
        """What a run may not have, the gravest first."""
        found = [result for result in self.results if result.breaks_the_run]
        return sorted(found, key=lambda result: result.level != Level.MUST)

    def to_json(self) -> dict[str, Any]:
        """The run as JSON."""
        return asdict(self) | {"counts": {str(k): n for k, n in self.counts().items()}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        """What `to_json` gave. Raises KeyError, TypeError or ValueError for anything else."""
        kept = {key: value for key, value in data.items() if key not in ("counts", "results")}
        return cls(**kept, results=[_result(each) for each in data["results"]])


def _result(data: Mapping[str, Any]) -> Result:
    failure = data["failure"]
    if failure is not None:
        wire = [Line(**line) for line in failure["wire"]]
        failure = Failure(**{**failure, "wire": wire})
    verdict, level = Verdict(data["verdict"]), Level(data["level"])
    return Result(**{**data, "verdict": verdict, "level": level, "failure": failure})
