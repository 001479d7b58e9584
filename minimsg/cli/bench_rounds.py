"""Two engines compared in rounds: A, B, A, B ... and the ratio inside each round.

On a shared machine the same command moves by up to 2x between moments, so only
figures of one round are compared, and a verdict is given only where the machine was
quiet. Knows no engine: each side is two functions (`Side`). Ours and transformers'
are in `bench_sides.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Protocol

from minimsg.cli.bench_settings import Shapes

MAX_LOAD = 0.5  # load average before the start, above which others are at work
MAX_PROBE_SPREAD = 0.2  # of the read bandwidth, between the rounds

Prompt = list[int]


class Side(Protocol):
    """One of the two engines."""

    name: str

    def decode(self, prompts: list[Prompt], new_tokens: int) -> float:
        """Tokens per second of decoding all prompts together, prefill not counted."""

    def prefill(self, prompt: Prompt) -> float:
        """Prompt tokens per second up to the first new token."""


@dataclass(frozen=True)
class Figure:
    """Tokens per second of both sides, measured one right after the other."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


@dataclass(frozen=True)
class Round:
    """Every figure once, and how busy the machine was."""

    figures: dict[str, Figure]
    load_average: float | None
    read_gb_per_s: float


@dataclass(frozen=True)
class Spread:
    """The ratios of all rounds."""

    min: float
    median: float
    max: float


def run_rounds(
    measure: Callable[[int], Round],
    rounds: int,
    time_limit_s: float,
    on_round: Callable[[Round], None],
) -> list[Round]:
    """Up to `rounds` rounds; one that would not fit into the time any more is not begun."""
    done: list[Round] = []
    longest_s = 0.0
    start = perf_counter()
    while not done or (len(done) < rounds and perf_counter() - start + longest_s < time_limit_s):
        began = perf_counter()
        done.append(measure(len(done)))
        longest_s = max(longest_s, perf_counter() - began)
        on_round(done[-1])
    return done


def measure_figures(
    ours: Side, theirs: Side, shapes: Shapes, prompt: Callable[[int, int], Prompt]
) -> dict[str, Figure]:
    """Each figure of one round, A then B. `prompt(tokens, number)` gives equal lengths."""
    figures = {}
    for batch in shapes.batches:
        prompts = [prompt(shapes.context, number) for number in range(batch)]
        figures[f"decode_{batch}"] = Figure(
            ours.decode(prompts, shapes.new_tokens), theirs.decode(prompts, shapes.new_tokens)
        )
    long = prompt(shapes.prefill, max(shapes.batches))
    figures[f"prefill_{shapes.prefill}"] = Figure(ours.prefill(long), theirs.prefill(long))
    return figures


@dataclass(frozen=True)
class Agreement:
    """How many of our greedy tokens are the other side's choice after the same tokens."""

    tokens: int
    same: int


@dataclass(frozen=True)
class Findings:
    """What all rounds say together."""

    rounds: list[Round]
    load_before: float | None
    agreement: Agreement

    @property
    def spreads(self) -> dict[str, Spread]:
        """Smallest, median and largest ratio of each figure."""
        spreads = {}
        for key in self.rounds[0].figures:
            ratios = [one.figures[key].ratio for one in self.rounds]
            spreads[key] = Spread(min(ratios), median(ratios), max(ratios))
        return spreads

    @property
    def noise(self) -> list[str]:
        """Why the machine was too busy for a verdict; empty if it was quiet."""
        reasons = []
        if self.load_before is not None and self.load_before > MAX_LOAD:
            reasons.append(f"load average {self.load_before} before the start (limit {MAX_LOAD})")
        probes = [one.read_gb_per_s for one in self.rounds]
        spread = 1 - min(probes) / max(probes)
        if spread > MAX_PROBE_SPREAD:
            reasons.append(f"read bandwidth varied by {spread:.0%} (limit {MAX_PROBE_SPREAD:.0%})")
        return reasons

    @property
    def verdicts(self) -> dict[str, str] | None:
        """Of each figure, in one word; None if the machine was too busy to say."""
        if self.noise:
            return None
        return {key: _verdict(spread) for key, spread in self.spreads.items()}

    def as_dict(self) -> dict[str, object]:
        """For JSON; `ratios` are the medians, ours / theirs."""
        return {
            "ratios": {key: spread.median for key, spread in self.spreads.items()},
            "spreads": {key: asdict(spread) for key, spread in self.spreads.items()},
            "verdicts": self.verdicts,
            "noise": self.noise,
            "agreement": asdict(self.agreement),
            "load_average_before": self.load_before,
            "rounds": [_round_as_dict(one) for one in self.rounds],
        }


def _verdict(spread: Spread) -> str:
    """`faster` or `slower` only if every round agrees."""
    if spread.min > 1:
        return "faster"
    return "slower" if spread.max < 1 else "undecided"


def _round_as_dict(one: Round) -> dict[str, object]:
    figures = {key: asdict(f) | {"ratio": f.ratio} for key, f in one.figures.items()}
    return asdict(one) | {"figures": figures}
