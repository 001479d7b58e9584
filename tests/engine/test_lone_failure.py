"""A row that fails ends alone: its neighbours say what they say when all goes well.

On a transformer of random weights, in float32 at temperature 0. The oracle is each request by
itself, on an engine that never met a fault.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import Batch, Finish, FinishReason, GenerationRequest, SamplingParams
from minimsg.loading import load_engine

GREEDY = SamplingParams(temperature=0)
NUM_TOKENS = 24
VICTIM = "r2"
FROM_STEP = 6

Fault = Callable[[Engine, list[GenerationRequest]], None]


@pytest.fixture(scope="module")
def requests() -> list[GenerationRequest]:
    """Six, all of which begin with the same forty ids: they share two pages."""
    numbers = random.Random(3)
    shared = [numbers.randrange(256) for _ in range(40)]
    rests = [[numbers.randrange(256) for _ in range(1 + 9 * index)] for index in range(6)]
    return [
        GenerationRequest(f"r{index}", shared + rest, NUM_TOKENS, sampling=GREEDY)
        for index, rest in enumerate(rests)
    ]


def engine_for(folder: Path) -> Engine:
    return load_engine(folder, EngineConfig(dtype="float32", num_pages=48, max_step_tokens=64))


@pytest.fixture(scope="module")
def alone(folder: Path, requests: list[GenerationRequest]) -> dict[str, list[int]]:
    """What each says by itself."""
    return {
        request.id: [token.id for token in engine_for(folder).run(request)[0]]
        for request in requests
    }


class FailingHook:
    """Allows everything, and raises in one place once three ids were committed."""

    def __init__(self, place: str) -> None:
        self.place, self.num_seen = place, 0

    def _at(self, place: str) -> None:
        if place == self.place and self.num_seen >= 3:
            raise ValueError("the grammar is in no state")

    def mask(self) -> None:
        self._at("mask")

    def forced(self) -> None:
        self._at("forced")

    def advance(self, id: int) -> None:
        self.num_seen += 1
        self._at("advance")

    def rollback(self, n: int) -> None:
        raise AssertionError("nothing is taken back here")


class NothingAllowed(FailingHook):
    """A grammar that has come to where no id may follow."""

    def mask(self) -> Any:
        return [] if self.num_seen >= 3 else None


def with_hook(hook: FailingHook) -> Fault:
    def install(engine: Engine, requests: list[GenerationRequest]) -> None:
        (index,) = (i for i, request in enumerate(requests) if request.id == VICTIM)
        requests[index] = replace(requests[index], hook=hook)

    return install


def not_finite(engine: Engine, requests: list[GenerationRequest]) -> None:
    """NaN in the victim's logits, and in all keys and values that it writes from then on."""
    clean, steps = engine.runner.run, 0

    def poisoned(batch: Batch) -> torch.Tensor:
        nonlocal steps
        steps += 1
        logits = clean(batch)
        if steps < FROM_STEP or VICTIM not in batch.sample_ids:
            return logits
        row = batch.sample_ids.index(VICTIM)
        slot = batch.slots[batch.sample_rows[row]]
        for layer in engine.runner.cache.layers:
            layer.key.view(-1, *layer.key.shape[2:])[slot] = torch.nan
            layer.value.view(-1, *layer.value.shape[2:])[slot] = torch.nan
        return logits.index_fill(0, torch.tensor([row]), torch.nan)

    engine.runner.run = poisoned  # type: ignore[method-assign]


def kernel_error(engine: Engine, requests: list[GenerationRequest]) -> None:
    """The model cannot be run with the victim in the batch."""
    clean, steps = engine.runner.run, 0

    def failing(batch: Batch) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps >= FROM_STEP and VICTIM in batch.request_ids:
            raise RuntimeError("this row cannot be computed")
        return clean(batch)

    engine.runner.run = failing  # type: ignore[method-assign]


FAULTS: dict[str, Callable[[], Fault]] = {
    "NaN": lambda: not_finite,
    "kernel": lambda: kernel_error,
    "mask": lambda: with_hook(FailingHook("mask")),
    "forced": lambda: with_hook(FailingHook("forced")),
    "advance": lambda: with_hook(FailingHook("advance")),
    "nothing allowed": lambda: with_hook(NothingAllowed("")),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_neighbours_say_what_they_say_alone(
    folder: Path,
    requests: list[GenerationRequest],
    alone: dict[str, list[int]],
    run: Any,
    ids_of: Any,
    fault: str,
) -> None:
    engine, asked = engine_for(folder), list(requests)
    sound = engine.runner.run
    FAULTS[fault]()(engine, asked)
    said = run(engine, *asked)
    last = said[VICTIM][-1]
    assert isinstance(last, Finish)
    assert last.reason is FinishReason.ERROR
    assert 0 < len(said[VICTIM]) < NUM_TOKENS  # it had begun
    neighbours = [each.id for each in asked if each.id != VICTIM]
    assert {id: ids_of(said[id]) for id in neighbours} == {id: alone[id] for id in neighbours}

    engine.runner.run = sound  # type: ignore[method-assign]
    afterwards = run(engine, *requests)  # in its pages, and in those that all share
    assert {id: ids_of(outputs) for id, outputs in afterwards.items()} == alone


def poison_once(engine: Engine, victim: str) -> None:
    """NaN in all keys and values of the first step that computes some of the victim's prompt."""
    clean, left = engine.runner.run, [victim]

    def poisoned(batch: Batch) -> torch.Tensor:
        logits = clean(batch)
        if left and victim in batch.request_ids:
            left.clear()
            row = batch.request_ids.index(victim)
            slots = batch.slots[batch.query_starts[row] : batch.query_starts[row + 1]]
            for layer in engine.runner.cache.layers:
                layer.key.flatten(0, 1)[slots] = torch.nan
                layer.value.flatten(0, 1)[slots] = torch.nan
        return logits

    engine.runner.run = poisoned  # type: ignore[method-assign]


@pytest.mark.parametrize("end", ["fails", "is cancelled", "only fills the cache"])
def test_a_fault_in_a_prompt_reaches_nobody_who_begins_alike(
    folder: Path,
    requests: list[GenerationRequest],
    alone: dict[str, list[int]],
    run: Any,
    ids_of: Any,
    end: str,
) -> None:
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=48, max_step_tokens=16))
    victim = replace(requests[5], id="victim")
    if end == "only fills the cache":
        victim = replace(victim, max_tokens=0)
    poison_once(engine, victim.id)
    if end == "is cancelled":
        engine.add(victim)
        engine.step()
        engine.cancel(victim.id)
        engine.step()
    else:
        run(engine, victim)
    for request in requests:
        assert ids_of(run(engine, request)[request.id]) == alone[request.id]
