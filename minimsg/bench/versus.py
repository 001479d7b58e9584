"""`minimsg bench --vs`: load both sides, run the rounds, make the report.

The two sides are in `sides.py`, rounds and ratios in `rounds.py`, prompts that share a
prefix in `sharing.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch

from minimsg.bench.foreign import quiet
from minimsg.bench.rounds import Agreement, Findings, Round, Rounds, measure
from minimsg.bench.settings import ORDINARY, TRANSFORMERS, Shapes, VersusSettings
from minimsg.bench.sharing import measure_sharing
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
    theirs: Ours | Theirs
    tokenizer: Tokenizer

    @classmethod
    def load(cls, vs: str, folder: Path, dtype: str, threads: int) -> Pair:
        """Nothing is read from a cache, unless that is what is compared."""
        ours = EngineConfig(dtype=dtype, device="cpu", threads=threads)
        plain = replace(ours, no_prefix_cache=True)
        theirs: Ours | Theirs
        if vs == TRANSFORMERS:
            ours, theirs = plain, Theirs(folder, choose_dtype(dtype, torch.device("cpu")))
        else:
            theirs = Ours(load_engine(folder, plain))
        if vs == ORDINARY:
            ours = replace(plain, deterministic=True)
        return cls(Ours(load_engine(folder, ours)), theirs, Tokenizer.from_folder(folder))

    def agreement(self, shapes: Shapes) -> Agreement:
        """On some of the prompts that were timed."""
        prompts = make_prompts(self.tokenizer, AGREEMENT_PROMPTS, shapes.context)
        replies = self.ours.generate(prompts, AGREEMENT_TOKENS)
        return self.theirs.agreement(prompts, replies)

    def measure(self, shapes: Shapes, rounds: Rounds) -> dict[str, list[Round]]:
        """All figures of this comparison."""
        prompts = partial(make_prompts, self.tokenizer)
        if isinstance(self.theirs, Ours) and self.ours.has_cache:
            return measure_sharing(self.ours, self.theirs, shapes, prompts, rounds)
        return measure(self.ours, self.theirs, shapes, prompts, rounds)


def compare(
    vs: str,
    folder: Path,
    settings: VersusSettings,
    time_limit_s: float,
    say: Callable[[str], None],
) -> tuple[Findings, dict[str, object]]:
    """The findings, and the head of the report. `say` hears one line of progress at a time."""
    load_before = load_average()
    shapes, threads = settings.shapes, settings.threads or default_threads()
    with quiet():
        say("loading the weights twice")
        pair = Pair.load(vs, folder, settings.dtype, threads)
        rounds = Rounds(
            settings.num_rounds,
            num_figures=len(shapes.names(vs)),
            time_limit_s=time_limit_s,
            probe=lambda: (read_bandwidth(), load_average()),
            on_round=lambda name, done: say(_line(name, done)),
        )
        figures = pair.measure(shapes, rounds)
        say("comparing greedy tokens")
        findings = Findings(figures, load_before, pair.agreement(shapes))
    head: dict[str, object] = {
        "settings": {"dtype": pair.ours.dtype, "threads": threads, **asdict(shapes)},
        "config": _config(folder),
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


def _config(folder: Path) -> dict[str, object]:
    """The shape of the model, so that a figure can be understood without it."""
    wanted = ("model_type", "num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")
    config = json.loads((folder / "config.json").read_text())
    return {name: config.get(name) for name in wanted}
