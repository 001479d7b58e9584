"""Rounds, ratios and verdicts, with two engines whose speed is known."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import pytest

from minimsg.bench.findings import Agreement, Findings
from minimsg.bench.rounds import Figures, Prompt, Round, Rounds, measure
from minimsg.bench.settings import LoadSettings, Shapes, VersusSettings
from minimsg.errors import ConfigError


class Scripted:
    """A side with a fixed speed after a slow first run; it notes what it is asked."""

    def __init__(self, name: str, log: list[str], speed: float) -> None:
        self.name, self.log, self.speed = name, log, speed

    def decoding(self, prompts: Sequence[Prompt], new_tokens: int) -> Figures:
        assert {len(prompt) for prompt in prompts} == {256}
        yield from self._measured(f"decode_{len(prompts)}")

    def prefilling(self, prompts: Sequence[Prompt]) -> Figures:
        (tokens,) = {len(prompt) for prompt in prompts}
        yield from self._measured(f"prefill_{tokens}")

    def _measured(self, name: str) -> Figures:
        yield 0.001
        while True:
            self.log.append(f"{self.name} {name}")
            yield self.speed


def rounds(number: int, time_limit_s: float = 60.0, num_figures: int = 5) -> Rounds:
    return Rounds(number, num_figures, time_limit_s, lambda: (20.0, 0.1), lambda name, done: None)


def findings(
    *ratios: float, load: float | None = 0.1, probes: list[float] | None = None
) -> Findings:
    probes = probes or [20.0] * len(ratios)
    measured = [Round(10 * r, 10.0, probe, 1.0) for r, probe in zip(ratios, probes, strict=True)]
    return Findings({"decode_1": measured}, load, Agreement(tokens=64, same=63))


def test_a_and_b_take_turns_for_each_figure_of_the_report() -> None:
    log: list[str] = []
    a, b = Scripted("A", log, 6.0), Scripted("B", log, 2.0)
    figures = measure(a, b, Shapes(), lambda number, n: [[i] * n for i in range(number)], rounds(3))
    names = ["decode_1", "decode_8", "decode_16", "prefill_512", "prefill_4096"]
    assert list(figures) == names
    cheapest_first = ["prefill_512", *names[:3], "prefill_4096"]
    assert log == [f"{side} {name}" for name in cheapest_first for side in "ABABAB"]
    assert {one.ratio for measured in figures.values() for one in measured} == {3.0}


def test_the_rounds_of_a_figure_end_when_the_next_would_not_fit_into_its_time() -> None:
    def side() -> Figures:
        while True:
            time.sleep(0.02)
            yield 1.0

    measured = rounds(100, time_limit_s=0.4, num_figures=2).run("decode_1", side(), side())
    assert 1 <= len(measured) <= 5, "0.2 s for this figure, 0.04 s a round"
    few = rounds(100, time_limit_s=0.0)
    for name in ("decode_1", "decode_8"):
        assert len(few.run(name, side(), side())) == 1, "one round is always made"


def test_ratios_are_medians_of_the_rounds_own_ratios() -> None:
    report = findings(1.5, 4.0, 2.0).as_dict()
    assert report["ratios"] == {"decode_1": 2.0}
    assert report["spreads"] == {"decode_1": {"min": 1.5, "median": 2.0, "max": 4.0}}
    assert report["agreement"] == {"tokens": 64, "same": 63}
    assert report["accuracy"] == {}
    first = json.loads(json.dumps(report))["rounds"]["decode_1"][0]
    assert (first["ours"], first["theirs"], first["ratio"]) == (15.0, 10.0, 1.5)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [([1.1, 2.0], "faster"), ([0.5, 0.9], "slower"), ([0.9, 2.0], "undecided")],
)
def test_a_verdict_needs_every_round_to_agree(ratios: list[float], verdict: str) -> None:
    assert findings(*ratios).verdicts == {"decode_1": verdict}


def test_a_machine_that_was_busy_before_the_start_gives_no_verdict() -> None:
    assert findings(2.0, load=0.5).verdicts is not None
    busy = findings(2.0, load=0.51)
    assert busy.verdicts is None
    assert "0.51" in busy.noise[0]
    assert busy.as_dict()["ratios"] == {"decode_1": 2.0}, "ratios are shown all the same"


def test_a_bandwidth_that_moved_gives_no_verdict() -> None:
    assert findings(2.0, 2.0, probes=[20.0, 16.1]).verdicts is not None
    assert findings(2.0, 2.0, probes=[20.0, 15.9]).verdicts is None


def test_a_platform_without_load_average_is_judged_by_bandwidth_alone() -> None:
    assert findings(2.0, load=None).verdicts is not None


def test_a_quick_run_has_two_rounds() -> None:
    assert VersusSettings(quick=True).num_rounds == 2
    assert VersusSettings().num_rounds == 7


def test_the_shapes_of_a_run_are_those_that_are_asked_for() -> None:
    shapes = VersusSettings(prefill="64").shapes(LoadSettings(streams="2,4", prompt_tokens=100))
    assert shapes.names("llama-bench") == ["decode_2", "decode_4", "prefill_64"]
    assert (shapes.batches, shapes.context) == ((2, 4), 100)
    with pytest.raises(ConfigError, match="--prefill '0'"):
        VersusSettings(prefill="0").shapes(LoadSettings())
