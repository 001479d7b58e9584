"""`minimsg bench --table`: stored comparisons as one table, as the README has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from minimsg.bench.stored import Stored

HEADINGS: Final = (
    *("compared", "figure", "minimsg", "the other", "ratio (min to max)"),
    *("of the limit", "accuracy"),
)
MARK: Final = "\\*"  # of what was measured on a machine that was not quiet


def markdown_table(reports: Sequence[Stored]) -> str:
    """Every figure of every report, then what the figures are and where they were taken."""
    lines = [_row(HEADINGS), _row(["---"] * len(HEADINGS))]
    for report in reports:
        lines += [_row(cells) for cells in _cells(report)]
    return "\n".join([*lines, "", *_legend(reports)])


def _cells(report: Stored) -> Iterator[list[str]]:
    accuracy = report.accuracy.get("ours")
    for key, spread in report.spreads.items():
        rounds = report.rounds[key]
        limit = report.limits.figures.get(key) if report.limits else None
        yield [
            report.title,
            key + (MARK if report.noise else ""),
            f"{median([one.ours for one in rounds]):.1f}",
            f"{median([one.theirs for one in rounds]):.1f}",
            f"{spread.median:.2f} ({spread.min:.2f} to {spread.max:.2f})",
            f"{limit.share:.0%}" if limit else "",
            f"KL {accuracy.kl:.4f}, {accuracy.agreement:.1%}" if accuracy else "",
        ]


def _legend(reports: Sequence[Stored]) -> Iterator[str]:
    numbers = sorted({len(rounds) for each in reports for rounds in each.rounds.values()})
    yield (
        f"Tokens per second, medians of {_range(numbers)} rounds; ratios are made inside each "
        "round. Accuracy is ours beside float32: mean KL divergence, and the share of tokens "
        "with the same likeliest one."
    )
    for machine in {report.machine.cpu: report.machine for report in reports}.values():
        features = ", ".join(machine.cpu_features)
        yield f"Measured on {machine.cpu}, {machine.cores} cores, {features}."
    if any(report.noise for report in reports):
        yield f"{MARK} The machine was not quiet, so this is no verdict."


def _range(numbers: Sequence[int]) -> str:
    return "no" if not numbers else "-".join(dict.fromkeys((str(numbers[0]), str(numbers[-1]))))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
