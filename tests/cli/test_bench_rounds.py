"""Rounds, ratios and verdicts, with two engines whose speed is known."""

from __future__ import annotations

import json

import pytest

from minimsg.cli.bench_rounds import (
    Agreement,
    Figure,
    Findings,
    Prompt,
    Round,
    measure_figures,
    run_rounds,
)
from minimsg.cli.bench_settings import Shapes, VersusSettings


class Scripted:
    """A side with fixed speeds, which notes what it is asked."""

    def __init__(self, name: str, log: list[str], speed: float) -> None:
        self.name, self.log, self.speed = name, log, speed

    def decode(self, prompts: list[Prompt], new_tokens: int) -> float:
        assert len({tuple(prompt) for prompt in prompts}) == len(prompts)
        assert {len(prompt) for prompt in prompts} == {256}
        self.log.append(f"{self.name} decode_{len(prompts)}")
        return self.speed * len(prompts)

    def prefill(self, prompt: Prompt) -> float:
        self.log.append(f"{self.name} prefill_{len(prompt)}")
        return self.speed * 10


def figures(ratio: float) -> dict[str, Figure]:
    return {"decode_1": Figure(ours=10 * ratio, theirs=10.0)}


def findings(
    *ratios: float, load: float | None = 0.1, probes: list[float] | None = None
) -> Findings:
    probes = probes or [20.0] * len(ratios)
    rounds = [Round(figures(r), 1.0, probe) for r, probe in zip(ratios, probes, strict=True)]
    return Findings(rounds, load, Agreement(tokens=64, same=63))


def test_a_round_measures_a_b_a_b_under_the_keys_of_the_report() -> None:
    log: list[str] = []
    a, b = Scripted("A", log, 6.0), Scripted("B", log, 2.0)
    measured = measure_figures(a, b, Shapes(), lambda tokens, number: [number] * tokens)
    keys = ["decode_1", "decode_8", "decode_16", "prefill_512"]
    assert list(measured) == keys
    assert log == [f"{side} {key}" for key in keys for side in "AB"]
    assert [figure.ratio for figure in measured.values()] == [3.0] * 4


def test_ratios_are_medians_of_the_rounds_own_ratios() -> None:
    report = findings(1.5, 4.0, 2.0).as_dict()
    assert report["ratios"] == {"decode_1": 2.0}
    assert report["spreads"] == {"decode_1": {"min": 1.5, "median": 2.0, "max": 4.0}}
    assert report["agreement"] == {"tokens": 64, "same": 63}
    first = json.loads(json.dumps(report))["rounds"][0]
    assert first["figures"]["decode_1"] == {"ours": 15.0, "theirs": 10.0, "ratio": 1.5}


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


def test_rounds_end_when_the_next_would_not_fit_into_the_time() -> None:
    said: list[Round] = []
    one = Round(figures(1.0), 0.0, 1.0)
    assert len(run_rounds(lambda _: one, 5, 60.0, said.append)) == 5
    assert len(run_rounds(lambda _: one, 5, 0.0, said.append)) == 1, "one round at least"
    assert len(said) == 6


def test_a_quick_run_has_two_rounds() -> None:
    assert VersusSettings(quick=True).num_rounds == 2
    assert VersusSettings().num_rounds == 7
