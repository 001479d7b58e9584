"""`minimsg bench --vs masks`: what it costs at each token to hold a reply to a grammar.

Real steps of the engine, one sequence, with a hook that is timed: what it takes to say what
may come and to take in what came, beside the rest of the same step. What the sampler makes
of a mask is in the rest. Knows no server; the hooks are those of `constrain/`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Final, TypeVar

from minimsg.bench.contests import default_threads, engine_config
from minimsg.bench.settings import VersusSettings
from minimsg.bench.sides import make_prompts
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.grammars import Grammars
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.engine import GREEDY, Engine
from minimsg.engine.types import BitMask, GenerationRequest, TokenHook
from minimsg.loading import load_engine
from minimsg.parsing.calls import CallableTool
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.wire import JsonObject

T = TypeVar("T")
TEXT: Final[JsonObject] = {"type": "string"}
NOTE: Final[JsonObject] = {
    "type": "object",
    "properties": {"title": TEXT, "tags": {"type": "array", "items": TEXT}, "stars": {
        "type": "integer", "minimum": 1, "maximum": 5}, "text": TEXT},
    "required": ["title", "tags", "stars", "text"],
}  # fmt: skip
TOOLS: Final = {"note": CallableTool(NOTE, is_held=True)}
BEGUN: Final = '<tool_call>\n{"name": "note", "arguments": {'  # which no model writes unasked
CASES: Final = {
    "forced tool": Constraint(must_call=["note"], is_one_call=True),
    "format": Constraint(schema=NOTE),
    "auto, strict": Constraint(strict={"note": "tools.0.custom.input_schema"}),
}


@dataclass
class Timed:
    """A hook that says first what is in `script`, and how long it took over each token."""

    hook: TokenHook
    script: list[int]
    times_s: list[float] = field(default_factory=lambda: [0.0])

    def mask(self) -> Sequence[int] | BitMask | None:
        return self._timed(self.hook.mask)

    def forced(self) -> int | None:
        forced = self._timed(self.hook.forced)
        return self.script[0] if self.script else forced

    def advance(self, id: int) -> None:
        del self.script[:1]
        self._timed(lambda: self.hook.advance(id))
        self.times_s.append(0.0)

    def rollback(self, n: int) -> None:
        self.hook.rollback(n)

    def _timed(self, act: Callable[[], T]) -> T:
        start = perf_counter()
        try:
            return act()
        finally:
            self.times_s[-1] += perf_counter() - start


@dataclass(frozen=True)
class MaskCost:
    """Milliseconds of one token, and what part of the rest of the step that is."""

    tokens: int
    median_ms: float
    mean_ms: float
    max_ms: float
    step_ms: float  # the median, without the hook
    percent: float  # of the means


def measure_masks(folder: Path, settings: VersusSettings, context: int) -> dict[str, MaskCost]:
    """The cost of each case, for the model in `folder`."""
    config = engine_config(settings, settings.threads or default_threads())
    engine, chat = load_engine(folder, config), ChatModel.open(folder, "bench")
    vocabulary = Vocabulary(chat.tokenizer, end_ids=chat.end_ids, end_id=min(chat.end_ids))
    grammars = Grammars(vocabulary, "hermes")
    prompts = make_prompts(chat.tokenizer, len(CASES), context)
    num_tokens = 16 if settings.quick else 96
    try:
        costs = {}
        for (name, constraint), prompt in zip(CASES.items(), prompts, strict=True):
            tools = {} if constraint.schema else TOOLS
            hook = asyncio.run(grammars.hook(constraint, tools))
            assert hook is not None
            script = vocabulary.tokenizer.encode(BEGUN) if constraint.strict else []
            costs[name] = _cost(engine, prompt, Timed(hook, list(script)), num_tokens)
    finally:
        grammars.close()
    return costs


def _cost(engine: Engine, prompt: list[int], hook: Timed, num_tokens: int) -> MaskCost:
    """Of one greedy reply; its first step reads the prompt and is not counted."""
    steps = engine.steps(
        GenerationRequest("bench-mask", prompt, num_tokens, sampling=GREEDY, hook=hook)
    )
    times_s, start = [], perf_counter()
    for _ in steps:
        times_s.append(perf_counter() - start)
        start = perf_counter()
    masks_ms = [1000 * seconds for seconds in hook.times_s[1 : len(times_s)]]
    rest_ms = [1000 * step - mask for step, mask in zip(times_s[1:], masks_ms, strict=False)]
    return MaskCost(
        tokens=len(masks_ms),
        median_ms=median(masks_ms),
        mean_ms=mean(masks_ms),
        max_ms=max(masks_ms),
        step_ms=median(rest_ms),
        percent=100 * mean(masks_ms) / mean(rest_ms),
    )
