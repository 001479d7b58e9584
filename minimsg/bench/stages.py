"""`minimsg bench --profile`, the engine alone: what a decode step costs beside the model.

The stages of `Engine.step` are timed by sums around their calls, which costs a microsecond
each; everything but the model's forward pass is the engine's own. The server under load is
in `live.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Final, ParamSpec, TypeVar

from minimsg.bench.replaced import replaced
from minimsg.bench.rounds import Prompt
from minimsg.bench.sides import Ours
from minimsg.engine.engine import Engine

P = ParamSpec("P")
R = TypeVar("R")

STAGES: Final = ("schedule", "inputs", "model", "sample", "commit", "rest")


@dataclass(frozen=True)
class StepCost:
    """Milliseconds of one decode step, mean of `steps`, and where they went."""

    streams: int
    steps: int
    step_ms: float
    stages_ms: dict[str, float]  # schedule, inputs, model, sample, commit, rest
    own_percent: float  # all but the model


def measure_steps(
    ours: Ours, prompts: Callable[[int], Sequence[Prompt]], batches: Sequence[int], num_steps: int
) -> list[StepCost]:
    """The cost at each number of streams; `prompts(number)` makes that many."""
    return [_cost(ours, prompts(batch), num_steps) for batch in batches]


def _cost(ours: Ours, prompts: Sequence[Prompt], num_steps: int) -> StepCost:
    figures = ours.decoding(prompts, num_steps)
    next(figures)  # the first steps of anything are slower
    with timed_stages(ours.engine) as seconds:
        next(figures)
    figures.close()
    stages = dict(seconds)
    step = stages.pop("step")
    stages["inputs"] = stages.pop("run") - stages["forward"]
    stages["rest"] = step - sum(stages.values())
    own = step - stages["forward"]
    stages["model"] = stages.pop("forward")
    return StepCost(
        streams=len(prompts),
        steps=num_steps,
        step_ms=1000 * step / num_steps,
        stages_ms={name: 1000 * stages[name] / num_steps for name in STAGES},
        own_percent=100 * own / step,
    )


def timed_stages(engine: Engine) -> AbstractContextManager[dict[str, float]]:
    """Seconds spent in each method that a step calls, by its name, while the block runs."""
    return timed(
        (engine, "step"),
        (engine.scheduler, "schedule"),
        (engine.scheduler, "commit"),
        (engine.runner, "run"),
        (engine.runner.model, "forward"),  # a module, by the contract
        (engine.sampler, "sample"),
    )


@contextmanager
def timed(*methods: tuple[object, str]) -> Iterator[dict[str, float]]:
    """Seconds spent in each of these methods, an object and a name, while the block runs."""
    seconds: dict[str, float] = defaultdict(float)
    with ExitStack() as stack:
        for owner, name in methods:
            by = _timed(name, getattr(owner, name), seconds)
            stack.enter_context(replaced(owner, name, by))
        yield seconds


def _timed(name: str, method: Callable[P, R], seconds: dict[str, float]) -> Callable[P, R]:
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        start = perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            seconds[name] += perf_counter() - start

    return call
