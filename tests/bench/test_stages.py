"""Where a step's time goes, with an engine whose parts are made slow."""

from __future__ import annotations

import time

import pytest
from torch import Tensor

from minimsg import hub
from minimsg.bench.replaced import replaced
from minimsg.bench.sides import Ours
from minimsg.bench.stages import measure_steps
from minimsg.config import EngineConfig
from minimsg.engine.types import Sampled, Sequence
from minimsg.loading import load_engine

SLOW_S = 0.02


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    folder = hub.ensure("tiny", tmp_path_factory.mktemp("models"))
    return Ours(load_engine(folder, EngineConfig(dtype="float32", device="cpu", num_pages=64)))


def test_the_parts_are_the_whole_and_what_is_slow_is_seen(ours: Ours) -> None:
    sample = ours.engine.sampler.sample

    def slowly(logits: Tensor, sequences: list[Sequence]) -> list[list[Sampled]]:
        time.sleep(SLOW_S)
        return sample(logits, sequences)

    with replaced(ours.engine.sampler, "sample", slowly):
        slow = Ours(ours.engine)
        costs = measure_steps(slow, lambda number: [[1, 2, 3]] * number, [1, 4], num_steps=3)
    assert [cost.streams for cost in costs] == [1, 4]
    for cost in costs:
        assert sum(cost.stages_ms.values()) == pytest.approx(cost.step_ms)
        assert cost.stages_ms["rest"] >= 0
        assert cost.stages_ms["sample"] >= 1000 * SLOW_S
        own = 100 * (1 - cost.stages_ms["model"] / cost.step_ms)
        assert cost.own_percent == pytest.approx(own)


def test_afterwards_every_method_is_the_engines_own(ours: Ours) -> None:
    measure_steps(ours, lambda number: [[1, 2, 3]] * number, [1], num_steps=1)
    engine = ours.engine
    for part in (engine, engine.scheduler, engine.runner, engine.runner.model, engine.sampler):
        methods = {"step", "schedule", "commit", "run", "forward", "sample"}
        assert not methods & set(vars(part))
