"""`minimsg bench --vs`: run a contest, hold our numbers beside float32, make the report.

Who is compared with whom is in `contests.py`, rounds and ratios in `rounds.py` and
`findings.py`, accuracy in `accuracy.py`, limits in `limits.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from minimsg.bench.accuracy import Model, measure_accuracy
from minimsg.bench.contests import CONTESTS, Contest, default_threads
from minimsg.bench.findings import Accuracy, Findings
from minimsg.bench.foreign import quiet
from minimsg.bench.limits import Limits, find_limits
from minimsg.bench.probes import matmul_gflops, read_bandwidth
from minimsg.bench.prompts import questions
from minimsg.bench.rounds import Round, Rounds
from minimsg.bench.settings import NO_PREFIX_CACHE, Shapes, VersusSettings
from minimsg.bench.sides import encode
from minimsg.config import EngineConfig
from minimsg.loading import choose_dtype, load_engine
from minimsg.machine import load_average, machine, versions
from minimsg.models.config import ModelConfig
from minimsg.prompt.chat import ChatModel

TIME_LIMIT_S: Final = 3600.0


@dataclass(frozen=True)
class Comparison:
    """What a comparison gives: the findings, the limits if they were asked for, and the head."""

    findings: Findings
    limits: Limits | None
    head: dict[str, object]
    notes: list[str]

    def lines(self) -> list[str]:
        """What is said below the table of the figures."""
        findings, limits = self.findings, self.limits
        numbers = {key: len(rounds) for key, rounds in findings.figures.items()}
        lines = ["rounds: " + ", ".join(f"{key} {number}" for key, number in numbers.items())]
        if limits:
            lines.append(limits.words())
        lines += [f"{side}: {one.words()}" for side, one in findings.accuracy.items()]
        if agreement := findings.agreement:
            lines.append(f"greedy tokens that agree: {agreement.same} of {agreement.tokens}")
        lines += [f"no verdict: {reason}" for reason in findings.noise]
        lines += self.notes
        verdicts = findings.verdicts or {}
        return lines + [f"{key}: minimsg is {verdict}" for key, verdict in verdicts.items()]

    def as_dict(self) -> dict[str, object]:
        """The report."""
        limits = {"limits": asdict(self.limits)} if self.limits else {}
        return self.findings.as_dict() | limits | self.head


def compare(
    vs: str,
    folder: Path,
    settings: VersusSettings,
    shapes: Shapes,
    time_limit_s: float | None,
    say: Callable[[str], None],
    *,
    with_limits: bool = False,
) -> Comparison:
    """The whole comparison. `say` hears one line of progress at a time."""
    load_before = load_average()
    threads = settings.threads or default_threads()
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
        outcome = CONTESTS[vs](Contest(folder, settings, shapes, threads, rounds))
        accuracy = _accuracy(folder, settings, threads, outcome.models, say)
    limits = None
    if with_limits and vs != NO_PREFIX_CACHE:
        limits = _limits(folder, settings, shapes, outcome.figures)
    findings = Findings(outcome.figures, load_before, outcome.agreement, accuracy)
    head = _head(folder, settings, shapes, threads) | {"peer": outcome.peer}
    return Comparison(findings, limits, head, outcome.notes)


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


def _limits(
    folder: Path, settings: VersusSettings, shapes: Shapes, figures: dict[str, list[Round]]
) -> Limits:
    config, dtype = ModelConfig.from_folder(folder), named_dtype(settings.dtype)
    return find_limits(config, dtype, shapes, figures, matmul_gflops())


def _head(
    folder: Path, settings: VersusSettings, shapes: Shapes, threads: int
) -> dict[str, object]:
    """What the figures were taken of, and on."""
    asked = {"dtype": named_dtype(settings.dtype), "kernel": settings.kernel, "threads": threads}
    return {
        "settings": asked | asdict(shapes),
        "config": _config(folder),
        "machine": machine().as_dict(),
        "versions": versions(),
    }


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
