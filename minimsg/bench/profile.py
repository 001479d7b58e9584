"""`minimsg bench --profile`: our own cost in a step, then the server's loop under load.

Loads the engine once for both. Stages are in `stages.py`, the server in `live.py`.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from minimsg.bench.contests import default_threads, engine_config
from minimsg.bench.foreign import quiet
from minimsg.bench.live import Load, Watched, watch
from minimsg.bench.settings import Shapes, VersusSettings
from minimsg.bench.sides import Ours, make_prompts
from minimsg.bench.stages import StepCost, measure_steps
from minimsg.engine.worker import EngineWorker
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel

MAX_OWN_PERCENT: Final = 5.0  # of a step with the most streams
MAX_LAG_MS: Final = 20.0  # p99 under the first load
NUM_STEPS: Final = 64  # that are timed at each number of streams
LOADS: Final = (Load(16, 64, 64), Load(256, 32, 16))
QUICK_STEPS: Final = 4
QUICK_LOADS: Final = (Load(4, 32, 4), Load(16, 32, 2))


@dataclass(frozen=True)
class Profile:
    """What was found."""

    steps: list[StepCost]
    server: list[Watched]

    def lines(self) -> list[str]:
        """What was found beside what is wanted."""
        cost, load = self.steps[-1], self.server[0]
        answered = (f"{each.answered} of {each.streams}" for each in self.server)
        return [
            f"our own cost with {cost.streams} streams: {cost.own_percent:.1f}% of a step, wanted "
            f"are at most {MAX_OWN_PERCENT:g}%",
            f"event loop with {load.streams} streams: {load.lag_ms['p99']:.1f} ms late (p99), "
            f"wanted are less than {MAX_LAG_MS:g} ms",
            f"answered: {', '.join(answered)}",
        ]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def profile(folder: Path, settings: VersusSettings, shapes: Shapes) -> Profile:
    """Of the model in `folder`."""
    config = engine_config(settings, settings.threads or default_threads())
    ours, chat = Ours(load_engine(folder, config)), ChatModel.open(folder, "bench")
    make = partial(make_prompts, chat.tokenizer, tokens=shapes.context)
    num_steps = QUICK_STEPS if settings.quick else NUM_STEPS
    with quiet():
        steps = measure_steps(ours, make, shapes.batches, num_steps)
        worker = EngineWorker(ours.engine, max_queue=max(load.streams for load in LOADS))
        loads = QUICK_LOADS if settings.quick else LOADS
        return Profile(steps, asyncio.run(watch(chat, worker, list(loads))))
