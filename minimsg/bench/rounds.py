"""Two engines compared in rounds: A, B, A, B ... and the ratio inside each round.

On a shared machine the same command moves by up to 2x between moments, so only what was
measured back to back is compared, and a verdict is given only where the machine was
quiet. Knows no engine: a side is two generators of figures (`Side`). Ours and
transformers' are in `sides.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Protocol

from minimsg.bench.settings import TRANSFORMERS, Shapes

MAX_LOAD = 0.5  # load average before the start, above which others are at work
MAX_PROBE_SPREAD = 0.2  # of the read bandwidth, between the rounds

Prompt = list[int]
Figures = Generator[float, None, None]  # measures once for each item that is taken


@dataclass(frozen=True)
class Agreement:
    """How many of our greedy tokens are the other side's choice after the same tokens."""

    tokens: int
    same: int


class Side(Protocol):
    """One of the two engines."""

    def decoding(self, prompts: list[Prompt], new_tokens: int) -> Figures:
        """Tokens per second of `new_tokens` more steps of all prompts together.

        The prompts are computed once, before the first item; the context then grows.
        """

    def prefilling(self, prompts: list[Prompt]) -> Figures:
        """Prompt tokens per second up to the first new token, of one prompt after the other."""


@dataclass(frozen=True)
class Round:
    """Tokens per second of both sides back to back, and how busy the machine was."""

    ours: float
    theirs: float
    read_gb_per_s: float
    load_average: float | None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


@dataclass(frozen=True)
class Spread:
    """The ratios of all rounds."""

    min: float
    median: float
    max: float


def measure(
    ours: Side,
    theirs: Side,
    shapes: Shapes,
    prompts: Callable[[int, int], list[Prompt]],
    rounds: Rounds,
) -> dict[str, list[Round]]:
    """The rounds of each figure. `prompts(number, tokens)` makes prompts of equal length."""
    *decoding, prefilling = shapes.names(TRANSFORMERS)
    shared = prompts(rounds.number + 1, shapes.prefill)
    sides = [side.prefilling(shared) for side in (ours, theirs)]
    prefilled = rounds.run(prefilling, *sides)
    figures = {}
    for name, batch in zip(decoding, shapes.batches, strict=True):
        shared = prompts(batch, shapes.context)
        sides = [side.decoding(shared, shapes.new_tokens) for side in (ours, theirs)]
        figures[name] = rounds.run(name, *sides)
    return {**figures, prefilling: prefilled}


class Rounds:
    """Runs rounds, as many as are wanted and fit into the time."""

    def __init__(
        self,
        number: int,
        num_figures: int,
        time_limit_s: float,
        probe: Callable[[], tuple[float, float | None]],
        on_round: Callable[[str, Round], None],
    ) -> None:
        """`probe` gives read bandwidth and load average; `on_round` hears of each round."""
        self.number = number
        self._figures_left = num_figures
        self._deadline = perf_counter() + time_limit_s
        self._probe = probe
        self._on_round = on_round

    def run(self, name: str, ours: Figures, theirs: Figures) -> list[Round]:
        """Rounds of one figure, at least one; then both sides are closed.

        A figure may use its share of the time left, and what cheaper ones before it left over.
        """
        now = perf_counter()
        deadline = now + (self._deadline - now) / self._figures_left
        self._figures_left -= 1
        with closing(ours), closing(theirs):
            return self._run(name, ours, theirs, deadline)

    def _run(self, name: str, ours: Figures, theirs: Figures, deadline: float) -> list[Round]:
        for side in (ours, theirs):
            next(side)  # the first run of anything is slower; it is not counted
        done: list[Round] = []
        longest_s = 0.0
        while not done or (len(done) < self.number and perf_counter() + longest_s < deadline):
            start = perf_counter()
            bandwidth, load = self._probe()
            done.append(Round(next(ours), next(theirs), bandwidth, load))
            longest_s = max(longest_s, perf_counter() - start)
            self._on_round(name, done[-1])
        return done


@dataclass(frozen=True)
class Findings:
    """What all rounds say together."""

    figures: dict[str, list[Round]]
    load_before: float | None
    agreement: Agreement

    @property
    def spreads(self) -> dict[str, Spread]:
        """Smallest, median and largest ratio of each figure."""
        spreads = {}
        for name, rounds in self.figures.items():
            ratios = [one.ratio for one in rounds]
            spreads[name] = Spread(min(ratios), median(ratios), max(ratios))
        return spreads

    @property
    def noise(self) -> list[str]:
        """Why the machine was too busy for a verdict; empty if it was quiet."""
        reasons = []
        if self.load_before is not None and self.load_before > MAX_LOAD:
            reasons.append(f"load average {self.load_before} before the start (limit {MAX_LOAD})")
        probes = [one.read_gb_per_s for rounds in self.figures.values() for one in rounds]
        spread = 1 - min(probes) / max(probes)
        if spread > MAX_PROBE_SPREAD:
            reasons.append(f"read bandwidth varied by {spread:.0%} (limit {MAX_PROBE_SPREAD:.0%})")
        return reasons

    @property
    def verdicts(self) -> dict[str, str] | None:
        """Of each figure, in one word; None if the machine was too busy to say."""
        if self.noise:
            return None
        return {name: _verdict(spread) for name, spread in self.spreads.items()}

    def as_dict(self) -> dict[str, object]:
        """For JSON; `ratios` are the medians, ours / theirs."""
        return {
            "ratios": {name: spread.median for name, spread in self.spreads.items()},
            "spreads": {name: asdict(spread) for name, spread in self.spreads.items()},
            "verdicts": self.verdicts,
            "noise": self.noise,
            "agreement": asdict(self.agreement),
            "load_average_before": self.load_before,
            "rounds": {
                name: [asdict(one) | {"ratio": one.ratio} for one in rounds]
                for name, rounds in self.figures.items()
            },
        }


def _verdict(spread: Spread) -> str:
    """`faster` or `slower` only if every round agrees."""
    if spread.min > 1:
        return "faster"
    return "slower" if spread.max < 1 else "undecided"
