"""Who is compared with whom: for each `--vs` both sides, loaded, and the rounds between them.

Prompts are ids for engines in process and words for servers. The rounds are in
`rounds.py`; head and accuracy of the report in `versus.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import torch

from minimsg.bench.accuracy import EngineLogits, Model
from minimsg.bench.findings import Agreement
from minimsg.bench.llama import LlamaBench
from minimsg.bench.rounds import Prompt, Round, Rounds, measure
from minimsg.bench.servers import llama_server, our_server
from minimsg.bench.serving import Rendered, Served
from minimsg.bench.settings import (
    IN_PROCESS,
    LLAMA_BENCH,
    LLAMA_SERVER,
    NO_PREFIX_CACHE,
    ORDINARY,
    TRANSFORMERS,
    UNTRACED,
    Shapes,
    VersusSettings,
)
from minimsg.bench.sharing import measure_sharing
from minimsg.bench.sides import Ours, Theirs, encode, make_prompts
from minimsg.bench.traced import TRACED, measure_untraced, trace_lines
from minimsg.config import EngineConfig
from minimsg.errors import ConfigError
from minimsg.loading import choose_dtype, load_engine
from minimsg.machine import usable_cores
from minimsg.prompt.chat import ChatModel
from minimsg.text.tokenizer import Tokenizer

AGREEMENT_PROMPTS: Final = 4
AGREEMENT_TOKENS: Final = 32
TORCH_DTYPES: Final = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Contest:
    """What is compared: the model in `folder`, under the settings, in these rounds."""

    folder: Path
    settings: VersusSettings
    shapes: Shapes
    threads: int
    rounds: Rounds

    def load(self, *, deterministic: bool = False, no_prefix_cache: bool = True) -> Ours:
        """Our engine. Nothing is read from a cache, unless that is what is compared."""
        config = engine_config(self.settings, self.threads)
        config = replace(config, deterministic=deterministic, no_prefix_cache=no_prefix_cache)
        return Ours(load_engine(self.folder, config))


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    figures: dict[str, list[Round]]
    agreement: Agreement | None = None
    models: Mapping[str, Model] = field(default_factory=dict)  # whose accuracy belongs to it
    peer: dict[str, object] = field(default_factory=dict)  # what the other side says of itself
    notes: list[str] = field(default_factory=list)  # to be said below the table


def beside_transformers(contest: Contest) -> Outcome:
    """On the same weights; its number format may be another."""
    dtype = peer_dtype(contest.settings)
    ours, theirs = contest.load(), Theirs(contest.folder, dtype)
    prompts = _prompts(contest)
    figures = measure(ours, theirs, contest.shapes, prompts, contest.rounds)
    models: dict[str, Model] = {"ours": EngineLogits(ours.engine), "theirs": theirs}
    agreement = _agreement(contest, ours, theirs)
    return Outcome(figures, agreement, models, {"dtype": str(dtype).removeprefix("torch.")})


def beside_llama_bench(contest: Contest) -> Outcome:
    """On its own quantization of the same model. Raises ConfigError."""
    program, gguf = contest.settings.llama_bench, contest.settings.gguf
    if program is None or gguf is None:
        raise ConfigError("--vs llama-bench needs --llama-bench, the program, and --gguf, its file")
    theirs = LlamaBench(program, gguf, contest.threads)
    peer = theirs.facts()
    ours = contest.load()
    figures = measure(ours, theirs, contest.shapes, _prompts(contest), contest.rounds)
    return Outcome(figures, models={"ours": EngineLogits(ours.engine)}, peer=peer)


def beside_llama_server(contest: Contest) -> Outcome:
    """Server beside server, each by its own count of tokens."""
    shapes = _reply_shapes(contest)
    with (
        our_server(contest.folder, contest.settings, contest.threads) as ours,
        llama_server(contest.settings, shapes, contest.threads) as theirs,
    ):
        figures = measure(ours, theirs, shapes, ours.texts, contest.rounds)
        peer: dict[str, object] = {"model": theirs.model.rpartition("/")[2]}  # no path
    return Outcome(figures, models={"ours": EngineLogits(contest.load().engine)}, peer=peer)


def beside_engine(contest: Contest) -> Outcome:
    """Our server, and our engine in this process."""
    chat = ChatModel.open(contest.folder, "bench")
    engine = Rendered(contest.load(no_prefix_cache=False), partial(encode, chat))
    with our_server(contest.folder, contest.settings, contest.threads) as ours:
        shapes = _reply_shapes(contest)
        return Outcome(measure(ours, engine, shapes, ours.texts, contest.rounds))


def beside_untraced(contest: Contest) -> Outcome:
    """Requests that are recorded, and the same ones that are not, in turn at one server.

    Without its cache: the second to ask would have read nothing.
    """
    prompts, context = _prompts(contest), contest.shapes.context
    shapes = _reply_shapes(contest)
    steps = measure_untraced(
        contest.load(), lambda number: prompts(number, context), shapes.batches, shapes.new_tokens
    )
    flags = (contest.folder, contest.settings, contest.threads, "--no-prefix-cache")
    with our_server(*flags) as plain, closing(Served(plain.url, TRACED)) as traced:
        figures = measure(traced, plain, shapes, plain.texts, contest.rounds)
    peer: dict[str, object] = {"untraced_steps": [asdict(each) for each in steps]}
    return Outcome(figures, peer=peer, notes=trace_lines(steps, figures))


def beside_no_cache(contest: Contest) -> Outcome:
    """Prompts that begin alike, with the prefix cache and without it."""
    ours, theirs = contest.load(no_prefix_cache=False), contest.load()
    shapes, prompts = contest.shapes, _prompts(contest)
    figures = measure_sharing(ours, theirs, shapes, prompts, contest.rounds)
    return Outcome(figures, _agreement(contest, ours, theirs))


def beside_ordinary(contest: Contest) -> Outcome:
    """Deterministic mode, beside our engine without it."""
    ours, theirs = contest.load(deterministic=True), contest.load()
    figures = measure(ours, theirs, contest.shapes, _prompts(contest), contest.rounds)
    return Outcome(figures, _agreement(contest, ours, theirs))


def engine_config(settings: VersusSettings, threads: int) -> EngineConfig:
    """Our side as the settings have it, on the CPU and without its prefix cache."""
    return EngineConfig(
        dtype=settings.dtype,
        kernel=settings.kernel,
        device="cpu",
        threads=threads,
        no_prefix_cache=True,
    )


def default_threads() -> int:
    """CPU threads of both sides: what OMP_NUM_THREADS says (torch reads it), else every core."""
    return torch.get_num_threads() if os.environ.get("OMP_NUM_THREADS") else usable_cores()


def peer_dtype(settings: VersusSettings) -> torch.dtype:
    """The number format of a peer that has torch's only."""
    name = settings.dtype if settings.peer_dtype == "auto" else settings.peer_dtype
    if name not in ("auto", *TORCH_DTYPES):
        name = "bfloat16"
    return choose_dtype(name, torch.device("cpu"))


CONTESTS: Final[Mapping[str, Callable[[Contest], Outcome]]] = {
    TRANSFORMERS: beside_transformers,
    LLAMA_BENCH: beside_llama_bench,
    LLAMA_SERVER: beside_llama_server,
    IN_PROCESS: beside_engine,
    NO_PREFIX_CACHE: beside_no_cache,
    ORDINARY: beside_ordinary,
    UNTRACED: beside_untraced,
}


def _prompts(contest: Contest) -> Callable[[int, int], list[Prompt]]:
    return partial(make_prompts, Tokenizer.from_folder(contest.folder))


def _reply_shapes(contest: Contest) -> Shapes:
    """Replies to clients are longer: a round has more around its tokens."""
    shapes = contest.shapes
    return replace(shapes, new_tokens=shapes.reply_tokens)


def _agreement(contest: Contest, ours: Ours, theirs: Ours | Theirs) -> Agreement:
    """On prompts as those that were timed."""
    context = contest.shapes.context
    prompts = _prompts(contest)(AGREEMENT_PROMPTS, context)
    return theirs.agreement(prompts, ours.generate(prompts, AGREEMENT_TOKENS))
