"""`minimsg bench --vs transformers`: load both sides, run the rounds, make the report.

The two sides are in `bench_sides.py`, rounds and ratios in `bench_rounds.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from minimsg.cli import bench_rounds
from minimsg.cli.bench_rounds import Agreement, Findings, Round
from minimsg.cli.bench_settings import Shapes, VersusSettings
from minimsg.cli.bench_sides import Ours, Theirs, prompt_maker, read_bandwidth
from minimsg.cli.foreign import quiet
from minimsg.cli.machine import load_average, machine, usable_cores, versions
from minimsg.config import EngineConfig
from minimsg.load import load_engine
from minimsg.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Pair:
    """Both sides, loaded, and the tokenizer that makes their prompts."""

    ours: Ours
    theirs: Theirs
    tokenizer: Tokenizer

    def round(self, shapes: Shapes, number: int) -> Round:
        """One round; new prompts in each, so that nothing a prefix cache kept is reused."""
        prompt = prompt_maker(self.tokenizer, seed=number)
        load, bandwidth = load_average(), read_bandwidth()
        figures = bench_rounds.measure_figures(self.ours, self.theirs, shapes, prompt)
        return Round(figures, load, bandwidth)

    def warm_up(self, shapes: Shapes) -> None:
        """The first run of anything is slower; it is not counted."""
        prompt = prompt_maker(self.tokenizer, seed=-1)(shapes.context, 0)
        self.ours.decode([prompt], 2)
        self.theirs.decode([prompt], 2)

    def agreement(self, shapes: Shapes) -> Agreement:
        """On the prompts of the first round."""
        prompt = prompt_maker(self.tokenizer, seed=0)
        prompts = [prompt(shapes.context, number) for number in range(max(shapes.batches))]
        replies = self.ours.generate(prompts, shapes.new_tokens)
        return self.theirs.agreement(prompts, replies)


def compare(
    folder: Path, settings: VersusSettings, time_limit_s: float, say: Callable[[str], None]
) -> tuple[Findings, dict[str, object]]:
    """The findings, and the head of the report. `say` hears one line of progress at a time."""
    load_before = load_average()
    shapes = settings.shapes
    threads = settings.threads or usable_cores()
    with quiet():
        say("loading the weights twice")
        pair = _load(folder, settings.dtype, threads)
        pair.warm_up(shapes)
        rounds = bench_rounds.run_rounds(
            lambda number: pair.round(shapes, number),
            settings.num_rounds,
            time_limit_s,
            on_round=lambda done: say(_line(done)),
        )
        say("comparing greedy tokens")
        findings = Findings(rounds, load_before, pair.agreement(shapes))
    head: dict[str, object] = {
        "settings": {"dtype": settings.dtype, "threads": threads, **asdict(shapes)},
        "config": _config(pair.theirs),
        "machine": machine().as_dict(),
        "versions": versions(),
    }
    return findings, head


def _load(folder: Path, dtype: str, threads: int) -> Pair:
    torch.set_num_threads(threads)
    config = EngineConfig(dtype=dtype, device="cpu", threads=threads)
    return Pair(
        Ours(load_engine(folder, config)),
        Theirs(folder, getattr(torch, dtype)),
        Tokenizer.from_folder(folder),
    )


def _line(done: Round) -> str:
    ratios = "  ".join(f"{key} {figure.ratio:.2f}" for key, figure in done.figures.items())
    return f"round: {ratios}  (read {done.read_gb_per_s:.1f} GB/s, load {done.load_average})"


def _config(theirs: Theirs) -> dict[str, object]:
    """The shape of the model, so that a figure can be understood without it."""
    wanted = ("model_type", "num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")
    return {name: getattr(theirs.model.config, name, None) for name in wanted}
