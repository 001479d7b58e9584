"""`minimsg bench --vs`: run a contest, hold our numbers beside float32, make the report.

Who is compared with whom is in `contests.py`, rounds and ratios in `rounds.py` and
`findings.py`, accuracy in `accuracy.py`, limits in `limits.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from minimsg.bench.accuracy import Model, measure_accuracy
from minimsg.bench.contests import CONTESTS, Contest
from minimsg.bench.findings import Accuracy, Findings
from minimsg.bench.foreign import quiet
from minimsg.bench.limits import Limits, find_limits
from minimsg.bench.probes import matmul_gflops, read_bandwidth
from minimsg.bench.prompts import questions
from minimsg.bench.rounds import Round, Rounds
from minimsg.bench.settings import VersusSettings
from minimsg.bench.sides import encode
from minimsg.config import EngineConfig
from minimsg.loading import choose_dtype, load_engine
from minimsg.machine import load_average, machine, usable_cores, versions
from minimsg.models.config import ModelConfig
from minimsg.prompt.chat import ChatModel

TIME_LIMIT_S: Final = 3600.0


@dataclass(frozen=True)
class Comparison:
    """What a comparison gives: the findings, the limits if they were asked for, and the head."""

    findings: Findings
    limits: Limits | None
    head: dict[str, object]

    def as_dict(self) -> dict[str, object]:
        """The report."""
        limits = {"limits": asdict(self.limits)} if self.limits else {}
        return self.findings.as_dict() | limits | self.head


def compare(
    vs: str,
    folder: Path,
    settings: VersusSettings,
    time_limit_s: float | None,
    say: Callable[[str], None],
    *,
    with_limits: bool = False,
) -> Comparison:
    """The whole comparison. `say` hears one line of progress at a time."""
    load_before = load_average()
    shapes, threads = settings.shapes, settings.threads or default_threads()
    torch.set_num_threads(threads)
    rounds = Rounds(
        settings.num_rounds,
        num_figures=len(shapes.names(vs)),
        time_limit_s=TIME_LIMIT_S if time_limit_s is None else time_limit_s,
        probe=lambda: (read_bandwidth(), load_average()),
        on_round=lambda name, done: say(_line(name, done)),
    )
    with quiet():
        say("loading both sides")
        outcome = CONTESTS[vs](Contest(folder, settings, threads, rounds))
        accuracy = _accuracy(folder, settings, threads, outcome.models, say)
    findings = Findings(outcome.figures, load_before, outcome.agreement, accuracy)
    dtype = named_dtype(settings.dtype)
    limits = None
    if with_limits and "decode_1" in outcome.figures:
        config = ModelConfig.from_folder(folder)
        limits = find_limits(config, dtype, shapes, outcome.figures, matmul_gflops())
    head: dict[str, object] = {
        "settings": {"dtype": dtype, "kernel": settings.kernel, "threads": threads}
        | asdict(shapes),
        "peer": outcome.peer,
        "config": _config(folder),
        "machine": machine().as_dict(),
        "versions": versions(),
    }
    return Comparison(findings, limits, head)


def default_threads() -> int:
    """CPU threads of both sides: what OMP_NUM_THREADS says (torch reads it), else every core."""
    return torch.get_num_threads() if os.environ.get("OMP_NUM_THREADS") else usable_cores()


def named_dtype(name: str) -> str:
    """What `auto` stands for on this machine; any other name as it is."""
    if name != "auto":
        return name
    return str(choose_dtype(name, torch.device("cpu"))).removeprefix("torch.")


def _accuracy(
    folder: Path,
    settings: VersusSettings,
    threads: int,
    models: Mapping[str, Model],
    say: Callable[[str], None],
) -> dict[str, Accuracy]:
    """Of each model, beside the plainest kernel in float32."""
    number, max_tokens = settings.sample
    if not models or not number:
        return {}
    say(f"accuracy, over {number} replies")
    plain = EngineConfig(
        dtype="float32", kernel="reference", device="cpu", threads=threads, kv_memory="1GiB"
    )
    reference, chat = load_engine(folder, plain), ChatModel.open(folder, "bench")
    prompts = [encode(chat, each) for each in questions(number)]
    return measure_accuracy(reference, models, prompts, max_tokens, chat.end_ids)


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
