"""What `minimsg bench` shows: its reports as tables for a person."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table

from minimsg.bench.findings import Accuracy
from minimsg.bench.report import QUANTILES, Level

if TYPE_CHECKING:
    from minimsg.bench.masks import MaskCost
    from minimsg.bench.versus import Comparison


def load_table(levels: list[Level]) -> Table:
    """One row for each number of streams."""
    table = Table(title=f"times are {'/'.join(QUANTILES)} in ms", box=SIMPLE, title_justify="left")
    for heading in ("streams", "requests", "errors", "TTFT", "per token", "tokens/s", "prefill/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for level in levels:
        table.add_row(
            str(level.streams),
            str(level.requests),
            str(sum(level.errors.values())),
            _percentiles(level.ttft_ms),
            _percentiles(level.inter_token_ms),
            f"{level.output_tokens_per_s:.1f}",
            f"{level.prefill_tokens_per_s.get('p50', 0.0):.0f}",
        )
    return table


def versus_table(vs: str, comparison: Comparison) -> Table:
    """One row for each figure: both sides, ratios, the limit, and what ours costs in accuracy."""
    title = "tokens/s are medians of the rounds; ratios are made inside each round"
    table = Table(title=title, box=SIMPLE, title_justify="left")
    table.add_column("figure")
    findings, limits = comparison.findings, comparison.limits
    for heading in ("rounds", "minimsg", vs, "ratio", "min", "max", "of limit", "accuracy"):
        table.add_column(heading, justify="right", no_wrap=True)
    for key, spread in findings.spreads.items():
        rounds, limit = findings.figures[key], limits.figures.get(key) if limits else None
        table.add_row(
            key,
            str(len(rounds)),
            f"{median([one.ours for one in rounds]):.1f}",
            f"{median([one.theirs for one in rounds]):.1f}",
            *(f"{ratio:.2f}" for ratio in (spread.median, spread.min, spread.max)),
            f"{limit.share:.0%}" if limit else "-",
            accuracy_words(findings.accuracy.get("ours")),
        )
    return table


def accuracy_words(accuracy: Accuracy | None) -> str:
    """Divergence from float32 and agreement with it, in one cell."""
    return f"KL {accuracy.kl:.4f}, {accuracy.agreement:.1%}" if accuracy else "-"


def masks_table(costs: Mapping[str, MaskCost]) -> Table:
    """One row for each way of holding a reply."""
    title = "ms that a grammar takes for each token, beside the rest of a step"
    table = Table(title=title, box=SIMPLE, title_justify="left")
    table.add_column("held by")
    for heading in ("tokens", "median", "mean", "max", "step", "% of a step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, cost in costs.items():
        figures = (cost.median_ms, cost.mean_ms, cost.max_ms, cost.step_ms, cost.percent)
        table.add_row(name, str(cost.tokens), *(f"{figure:.2f}" for figure in figures))
    return table


def _percentiles(values: Mapping[str, float]) -> str:
    return "/".join(f"{values[name]:.0f}" for name in QUANTILES) if values else "-"
