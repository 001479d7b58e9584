"""The arithmetic of a benchmark: from the times of requests to percentiles.

Knows numbers only; `load.py` measures them and `tables.py` shows them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from minimsg.bench.sample import Sample

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True)
class Level:
    """What one number of concurrent streams gave."""

    streams: int
    requests: int  # answered
    errors: dict[str, int]  # kind -> how many
    wall_s: float
    input_tokens: int
    output_tokens: int
    output_tokens_per_s: float
    prefill_tokens_per_s: dict[str, float]  # of each request: input tokens / time to first token
    ttft_ms: dict[str, float]
    inter_token_ms: dict[str, float]
    gap_ms: dict[str, float]
    total_ms: dict[str, float]


def summarize(
    streams: int, samples: Sequence[Sample], errors: Counter[str], wall_s: float
) -> Level:
    """Fold the replies of one level into its figures."""
    output_tokens = sum(sample.output_tokens for sample in samples)
    means = [s.inter_token_s for s in samples if s.inter_token_s is not None]
    return Level(
        streams=streams,
        requests=len(samples),
        errors=dict(errors),
        wall_s=wall_s,
        input_tokens=sum(sample.input_tokens for sample in samples),
        output_tokens=output_tokens,
        output_tokens_per_s=output_tokens / wall_s if wall_s else 0.0,
        prefill_tokens_per_s=percentiles([s.input_tokens / s.ttft_s for s in samples if s.ttft_s]),
        ttft_ms=_milliseconds([sample.ttft_s for sample in samples]),
        inter_token_ms=_milliseconds(means),
        gap_ms=_milliseconds([gap for sample in samples for gap in sample.gaps_s]),
        total_ms=_milliseconds([sample.total_s for sample in samples]),
    )


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p90 and p99 of `values`; empty where there are none."""
    ordered = sorted(values)
    return {name: quantile(ordered, q) for name, q in QUANTILES.items()} if ordered else {}


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile of sorted values, linear between neighbours (Hyndman and Fan 1996, type 7)."""
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    return percentiles([1000 * value for value in seconds])
