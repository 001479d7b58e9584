"""`minimsg bench --vs transformers`: load both sides, run the rounds, make the report.

The two sides are in `sides.py`, rounds and ratios in `rounds.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from minimsg.bench.foreign import quiet
from minimsg.bench.rounds import Agreement, Findings, Round, Rounds, measure
from minimsg.bench.settings import Shapes, VersusSettings
from minimsg.bench.sides import Ours, Theirs, make_prompts, read_bandwidth
from minimsg.config import EngineConfig
from minimsg.loading import choose_dtype, load_engine
from minimsg.machine import load_average, machine, usable_cores, versions
from minimsg.text.tokenizer import Tokenizer

AGREEMENT_PROMPTS, AGREEMENT_TOKENS = 4, 32


@dataclass(frozen=True)
class Pair:
    """Both sides, loaded, and the tokenizer that makes their prompts."""

    ours: Ours
    theirs: Theirs
    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: Path, dtype: str, threads: int) -> Pair:
        config = EngineConfig(dtype=dtype, device="cpu", threads=threads)
        ours = Ours(load_engine(folder, config))
        theirs = Theirs(folder, choose_dtype(dtype, torch.device("cpu")))
        return cls(ours, theirs, Tokenizer.from_folder(folder))

    def agreement(self, shapes: Shapes) -> Agreement:
        """On some of the prompts that were timed."""
        prompts = make_prompts(self.tokenizer, AGREEMENT_PROMPTS, shapes.context)
        replies = self.ours.generate(prompts, AGREEMENT_TOKENS)
        return self.theirs.agreement(prompts, replies)


def compare(
    folder: Path, settings: VersusSettings, time_limit_s: float, say: Callable[[str], None]
) -> tuple[Findings, dict[str, object]]:
    """The findings, and the head of the report. `say` hears one line of progress at a time."""
    load_before = load_average()
    shapes, threads = settings.shapes, settings.threads or default_threads()
    with quiet():
        say("loading the weights twice")
        pair = Pair.load(folder, settings.dtype, threads)
        rounds = Rounds(
            settings.num_rounds,
            num_figures=len(shapes.names),
            time_limit_s=time_limit_s,
            probe=lambda: (read_bandwidth(), load_average()),
            on_round=lambda name, done: say(_line(name, done)),
        )
        prompts = partial(make_prompts, pair.tokenizer)
        figures = measure(pair.ours, pair.theirs, shapes, prompts, rounds)
        say("comparing greedy tokens")
        findings = Findings(figures, load_before, pair.agreement(shapes))
    head: dict[str, object] = {
        "settings": {"dtype": pair.theirs.dtype, "threads": threads, **asdict(shapes)},
        "config": _config(pair.theirs),
        "machine": machine().as_dict(),
        "versions": versions(),
    }
    return findings, head


def default_threads() -> int:
    """CPU threads of both sides: what OMP_NUM_THREADS says (torch reads it), else every core."""
    return torch.get_num_threads() if os.environ.get("OMP_NUM_THREADS") else usable_cores()


def _line(name: str, done: Round) -> str:
    return (
        f"{name}: {done.ours:.1f} and {done.theirs:.1f} tokens/s, ratio {done.ratio:.2f}  "
        f"(read {done.read_gb_per_s:.1f} GB/s, load {done.load_average})"
    )


def _config(theirs: Theirs) -> dict[str, object]:
    """The shape of the model, so that a figure can be understood without it."""
    wanted = ("model_type", "num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")
    return {name: getattr(theirs.model.config, name, None) for name in wanted}
