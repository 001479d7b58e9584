"""From times to figures; expected values by hand, or numpy's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minimsg.bench.report import percentiles, summarize
from minimsg.bench.sample import Sample

# Three tokens: the first after 1 s, then 0.5 s and 0.25 s.
SAMPLE = Sample(delta_times_s=[1.0, 1.5, 1.75], total_s=2.0, input_tokens=100, output_tokens=3)


def test_the_times_of_one_reply() -> None:
    assert SAMPLE.ttft_s == 1.0
    assert SAMPLE.inter_token_s == 0.375
    assert SAMPLE.gaps_s == [0.5, 0.25]


def test_inter_token_time_counts_tokens_not_pieces() -> None:
    """A server may send several tokens in one piece."""
    assert Sample([1.0, 2.0], 2.0, 10, output_tokens=5).inter_token_s == 0.25


def test_an_empty_reply_has_its_end_as_first_token_and_no_inter_token_time() -> None:
    empty = Sample([], total_s=0.3, input_tokens=10, output_tokens=1)
    assert empty.ttft_s == 0.3
    assert empty.inter_token_s is None
    assert empty.gaps_s == []


def test_the_figures_of_a_level() -> None:
    level = summarize(2, [SAMPLE, SAMPLE], Counter({"timeout": 1}), wall_s=4.0)
    assert (level.streams, level.requests, level.errors) == (2, 2, {"timeout": 1})
    assert (level.input_tokens, level.output_tokens) == (200, 6)
    assert level.output_tokens_per_s == 1.5
    assert level.prefill_tokens_per_s["p50"] == 100.0
    assert level.ttft_ms == {"p50": 1000.0, "p90": 1000.0, "p99": 1000.0}
    assert level.inter_token_ms["p50"] == 375.0
    assert level.gap_ms["p50"] == 375.0
    assert level.total_ms["p99"] == 2000.0


def test_a_level_without_a_reply_has_no_percentiles() -> None:
    level = summarize(1, [], Counter({"HTTP 529 overloaded_error": 4}), wall_s=1.0)
    assert level.ttft_ms == {}
    assert level.output_tokens_per_s == 0.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_percentiles_are_numpys(values: list[float]) -> None:
    found = percentiles(values)
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99)):
        assert found[name] == pytest.approx(float(np.percentile(values, percent)))
