"""What `minimsg bench` shows: its reports as tables for a person."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from rich.table import Table

from minimsg.cli.bench_report import QUANTILES, Level
from minimsg.cli.bench_rounds import Findings


def load_table(levels: list[Level]) -> Table:
    """One row for each number of streams."""
    table = Table(title="times in ms: " + " / ".join(QUANTILES))
    for heading in ("streams", "requests", "errors", "TTFT", "inter-token", "total"):
        table.add_column(heading, justify="right")
    table.add_column("output tokens/s", justify="right")
    table.add_column("prefill tokens/s (p50)", justify="right")
    for level in levels:
        table.add_row(
            str(level.streams),
            str(level.requests),
            str(sum(level.errors.values())),
            _percentiles(level.ttft_ms),
            _percentiles(level.inter_token_ms),
            _percentiles(level.total_ms),
            f"{level.output_tokens_per_s:.1f}",
            f"{level.prefill_tokens_per_s.get('p50', 0.0):.0f}",
        )
    return table


def versus_table(findings: Findings) -> Table:
    """One row for each figure: both sides, and the ratios."""
    table = Table(title="tokens/s, medians of the rounds; ratio inside each round")
    for heading in ("figure", "rounds", "minimsg", "transformers", "ratio", "min", "max"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for key, spread in findings.spreads.items():
        rounds = findings.figures[key]
        table.add_row(
            key,
            str(len(rounds)),
            f"{median([one.ours for one in rounds]):.1f}",
            f"{median([one.theirs for one in rounds]):.1f}",
            *(f"{ratio:.2f}" for ratio in (spread.median, spread.min, spread.max)),
        )
    return table


def _percentiles(values: Mapping[str, float]) -> str:
    return " / ".join(f"{values[name]:.0f}" for name in QUANTILES) if values else "-"
