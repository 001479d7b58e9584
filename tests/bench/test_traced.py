"""What records cost: an engine whose notes are made slow, and what is said of the figures."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from minimsg import hub
from minimsg.bench.replaced import replaced
from minimsg.bench.rounds import Round
from minimsg.bench.sides import Ours
from minimsg.bench.traced import UntracedStep, measure_untraced, trace_lines
from minimsg.config import EngineConfig
from minimsg.engine.types import Sequence
from minimsg.loading import load_engine

SLOW_S = 0.02


def test_what_a_step_spends_on_records_is_seen_and_the_rest_is_not(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = hub.ensure("tiny", tmp_path_factory.mktemp("models"))
    ours = Ours(load_engine(folder, EngineConfig(dtype="float32", device="cpu", num_pages=64)))
    timeline = ours.engine.timeline
    begin = timeline.begin

    def slowly(sequences: Iterable[Sequence]) -> None:
        time.sleep(SLOW_S)
        begin(sequences)

    (quick,) = measure_untraced(ours, lambda number: [[1, 2, 3]] * number, [2], num_steps=3)
    with replaced(timeline, "begin", slowly):
        (slow,) = measure_untraced(ours, lambda number: [[1, 2, 3]] * number, [2], num_steps=3)
    assert quick.recording_us < 1e6 * SLOW_S / 2
    assert slow.recording_us >= 1e6 * SLOW_S
    assert slow.step_ms >= slow.recording_us / 1000
    assert slow.percent == pytest.approx(100 * slow.recording_us / (1000 * slow.step_ms))
    assert "begin" not in vars(timeline)  # it is the engine's own again


def test_costs_are_medians_beside_what_is_wanted() -> None:
    rounds = [Round(ours, 100.0, 10.0, 0.1) for ours in (50.0, 94.0, 96.0)]
    on, off, _ = trace_lines([UntracedStep(8, 20.0, 5.0)], {"decode_8": rounds})
    assert on.endswith("decode_8 6.0% slower (medians); wanted are less than 10%")
    assert off.endswith("5.0 us of 20.00 ms with 8: 0.025%; wanted are less than 1%")
