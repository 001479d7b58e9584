"""What `minimsg bench` shows: its reports as tables for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table

from minimsg.bench.findings import Accuracy
from minimsg.bench.report import QUANTILES, Level

if TYPE_CHECKING:
    from minimsg.bench.citations import Score
    from minimsg.bench.live import Watched
    from minimsg.bench.masks import MaskCost
    from minimsg.bench.stages import StepCost
    from minimsg.bench.versus import Comparison


def load_table(levels: list[Level]) -> Table:
    """One row for each number of streams."""
    headings = ("streams", "requests", "errors", "TTFT", "per token", "tokens/s", "prefill/s")
    table = _table(f"times are {'/'.join(QUANTILES)} in ms", headings)
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
    title = f"minimsg and {vs}, tokens/s: medians; ratios are made inside each round"
    headings = ("minimsg", "other", "ratio", "min", "max", "of limit", "KL", "agreed")
    table = _table(title, headings, label="figure")
    findings, limits = comparison.findings, comparison.limits
    accuracy = accuracy_cells(findings.accuracy.get("ours"))
    for key, spread in findings.spreads.items():
        rounds, limit = findings.figures[key], limits.figures.get(key) if limits else None
        table.add_row(
            key,
            f"{median([one.ours for one in rounds]):.1f}",
            f"{median([one.theirs for one in rounds]):.1f}",
            *(f"{ratio:.2f}" for ratio in (spread.median, spread.min, spread.max)),
            f"{limit.share:.0%}" if limit else "-",
            *accuracy,
        )
    return table


def accuracy_cells(accuracy: Accuracy | None) -> tuple[str, str]:
    """Divergence from float32, and the share of likeliest tokens that are its own."""
    return (f"{accuracy.kl:.4f}", f"{accuracy.agreement:.1%}") if accuracy else ("-", "-")


def citations_table(scores: Mapping[str, Mapping[str, Score]]) -> Table:
    """A row for each kind of attribution and half of the questions."""
    headings = ("questions", "answered", "cited", "right", "precision", "recall")
    title = "citations of answers whose source is known"
    table = _table(title, headings, label="--citations")
    for kind, halves in scores.items():
        for half, score in halves.items():
            numbers = (score.questions, score.answered, score.citations, score.right)
            shares = (score.precision, score.recall)
            shown = ["-" if share is None else f"{share:.2f}" for share in shares]
            table.add_row(f"{kind}, {half}", *map(str, numbers), *shown)
    return table


def masks_table(costs: Mapping[str, MaskCost]) -> Table:
    """One row for each way of holding a reply."""
    headings = ("tokens", "median", "mean", "max", "step", "% of a step")
    title = "ms that a grammar takes for each token, beside the rest of a step"
    table = _table(title, headings, label="held by")
    for name, cost in costs.items():
        figures = (cost.median_ms, cost.mean_ms, cost.max_ms, cost.step_ms, cost.percent)
        table.add_row(name, str(cost.tokens), *(f"{figure:.2f}" for figure in figures))
    return table


def steps_table(costs: list[StepCost]) -> Table:
    """One row for each number of streams: where a decode step's time goes."""
    headings = ("streams", "step", *costs[0].stages_ms, "own %")
    table = _table("ms of a decode step; our own is all but the model", headings)
    for cost in costs:
        figures = (cost.step_ms, *cost.stages_ms.values())
        cells = [f"{figure:.2f}" for figure in figures]
        table.add_row(str(cost.streams), *cells, f"{cost.own_percent:.1f}")
    return table


def watched_table(loads: list[Watched]) -> Table:
    """One row for each load on the server."""
    title = f"a server under load; lag of its event loop is {'/'.join(QUANTILES)} in ms"
    table = _table(title, ("streams", "answered", "errors", "tokens/s", "lag"))
    for load in loads:
        lag = "/".join(f"{load.lag_ms[name]:.1f}" for name in QUANTILES) if load.lag_ms else "-"
        errors = str(sum(load.errors.values()))
        table.add_row(
            str(load.streams), str(load.answered), errors, f"{load.tokens_per_s:.1f}", lag
        )
    return table


def _table(title: str, headings: Iterable[str], *, label: str | None = None) -> Table:
    """A table that has no rows yet: columns of figures, after one of words if it has a label."""
    table = Table(title=title, box=SIMPLE, title_justify="left")
    if label is not None:
        table.add_column(label)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _percentiles(values: Mapping[str, float]) -> str:
    return "/".join(f"{values[name]:.0f}" for name in QUANTILES) if values else "-"
