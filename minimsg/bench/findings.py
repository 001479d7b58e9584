"""What the rounds of a comparison say together: ratios, verdicts, and what stands against one.

A verdict is given only where the machine was quiet; the figures are shown all the same.
Measuring is in `rounds.py`, the accuracy beside the speed in `accuracy.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median

from minimsg.bench.rounds import Round

MAX_LOAD = 0.5  # load average before the start, above which others are at work
MAX_PROBE_SPREAD = 0.2  # of the read bandwidth, between the rounds


@dataclass(frozen=True)
class Agreement:
    """How many of our greedy tokens are the other side's choice after the same tokens."""

    tokens: int
    same: int


@dataclass(frozen=True)
class Accuracy:
    """How far a model's numbers are from its own in float32, after the same tokens."""

    tokens: int  # places in replies, each with a whole vocabulary of logits
    kl: float  # nats, from float32's distribution, mean of the places
    mean_difference: float  # of two logits
    max_difference: float
    agreement: float  # share of the places with the same likeliest token

    def words(self) -> str:
        """In one line."""
        return (
            f"beside float32, over {self.tokens} tokens: KL {self.kl:.4f}, logits differ by "
            f"{self.mean_difference:.3f} in the mean and {self.max_difference:.2f} at most, "
            f"{self.agreement:.1%} of the likeliest tokens agree"
        )


@dataclass(frozen=True)
class Spread:
    """The ratios of all rounds."""

    min: float
    median: float
    max: float


@dataclass(frozen=True)
class Findings:
    """What all rounds say together."""

    figures: dict[str, list[Round]]
    load_before: float | None
    agreement: Agreement | None = None
    accuracy: dict[str, Accuracy] = field(default_factory=dict)  # of `ours` and of `theirs`

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
            "agreement": asdict(self.agreement) if self.agreement else None,
            "accuracy": {side: asdict(one) for side, one in self.accuracy.items()},
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
