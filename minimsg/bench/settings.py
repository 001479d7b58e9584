"""The settings of both benchmarks; flags are made from them like those of the server.

Torch-free and light: the command's help needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from minimsg.config import EngineConfig, option
from minimsg.errors import ConfigError

MAX_STREAMS = 1024
MAX_TOKENS = 1 << 20  # of a prompt that is to be read

TRANSFORMERS, NO_PREFIX_CACHE, ORDINARY = "transformers", "no-prefix-cache", "ordinary"
LLAMA_BENCH, LLAMA_SERVER, IN_PROCESS, MASKS = "llama-bench", "llama-server", "in-process", "masks"
CITATIONS, UNTRACED = "citations", "untraced"
RIVALS = {
    TRANSFORMERS: "transformers",
    LLAMA_BENCH: "llama.cpp by its own benchmarks, a short run a round",
    LLAMA_SERVER: "its server beside ours, under one load",
    IN_PROCESS: "our server, beside our engine without one",
    NO_PREFIX_CACHE: "our engine without its prefix cache",
    ORDINARY: "deterministic mode, beside our engine without it",
    UNTRACED: "requests that are recorded beside others, at our server; and what all others pay",
    MASKS: "what a grammar costs, beside the rest of a step",
    CITATIONS: "replies that cite, beside known sources",
}
"""What `--vs` can name."""
DTYPES: tuple[str, ...] = next(
    each.metadata["choices"] for each in fields(EngineConfig) if each.name == "dtype"
)


@dataclass(frozen=True)
class LoadSettings:
    """`minimsg bench`: what is asked of a server."""

    url: str = option("http://127.0.0.1:8080", "Base URL; nothing else is contacted.")
    model: str | None = option(
        None, "Model to ask; default is the first that the server lists (with --vs: smollm2)."
    )
    streams: str = option("1,8,16", "Numbers of concurrent streams, measured one after the other.")
    requests: int = option(
        16, "Requests for each number of streams; at least one a stream.", minimum=1
    )
    prompt_tokens: int = option(256, "Length of each prompt, about.", minimum=1)
    max_tokens: int = option(64, "Length limit of each reply.", minimum=1)
    time_limit_s: float | None = option(
        None, "Seconds that the measurement may take; default is 300, with --vs 3600."
    )
    request_timeout_s: float = option(120.0, "Seconds that one reply may take.")
    api_key: str | None = option(None, "Key to send, if the server wants one.")

    def __post_init__(self) -> None:
        _ = self.levels  # refused now, not after a warm-up

    @property
    def levels(self) -> tuple[int, ...]:
        """`streams` as numbers. Raises ConfigError."""
        return numbers("--streams", self.streams, MAX_STREAMS)


def numbers(flag: str, words: str, maximum: int) -> tuple[int, ...]:
    """What a flag lists. Raises ConfigError."""
    parts = [part.strip() for part in words.split(",")]
    if all(part.isdecimal() and 1 <= int(part) <= maximum for part in parts):
        return tuple(int(part) for part in parts)
    raise ConfigError(
        f"{flag} {words!r}: wanted are numbers from 1 to {maximum} with commas between them, "
        "such as 1,8,16"
    )


@dataclass(frozen=True)
class Shapes:
    """What is measured with --vs."""

    batches: tuple[int, ...] = (1, 8, 16)
    context: int = 256  # prompt tokens of each sequence; grows by `new_tokens` a round
    prefills: Mapping[str, int] = field(default_factory=lambda: named_prefills("512,4096"))
    new_tokens: int = 16  # decode steps that are timed in each round
    reply_tokens: int = 64  # the same beside a server
    shared: int = 2000  # prompt tokens that many prompts begin with,
    system: int = 512  # the same, for clients that ask at once
    tail: int = 32  # and those that each has of its own
    clients: int = 16

    @property
    def decodes(self) -> dict[str, int]:
        """Numbers of streams by the names of their figures."""
        return {f"decode_{batch}": batch for batch in self.batches}

    def names(self, vs: str) -> list[str]:
        """The figures of the report, in order."""
        if vs == NO_PREFIX_CACHE:
            return ["warm_prompt", "shared_prompt"]
        return [*self.decodes, *self.prefills]


def named_prefills(words: str) -> dict[str, int]:
    """Lengths of prompts by the names of their figures. Raises ConfigError."""
    return {f"prefill_{tokens}": tokens for tokens in numbers("--prefill", words, MAX_TOKENS)}


@dataclass(frozen=True)
class VersusSettings:
    """`minimsg bench --vs`: the engine beside another, or beside itself."""

    dtype: str = option(
        "auto", "With --vs: number format of our side, as minimsg serve has it.", choices=DTYPES
    )
    peer_dtype: str = option(
        "auto",
        "With --vs transformers: number format of its side; auto is ours, or bfloat16 where "
        "it has no such format.",
        choices=("auto", "float32", "bfloat16", "float16"),
    )
    kernel: str | None = option(None, "With --vs: kernel of our side; default as serve has it.")
    llama_bench: Path | None = option(
        None, "With --vs llama-bench: that program; llama-batched-bench is looked for beside it."
    )
    llama_server: str | None = option(
        None, "With --vs llama-server: that program, to be started; or the base URL of one."
    )
    gguf: Path | None = option(None, "With --vs llama-...: the .gguf file that it runs.")
    prefill: str = option(
        "512,4096",
        "With --vs: lengths of prompts to be read; what is decoded is said by --streams and "
        "--prompt-tokens.",
    )
    rounds: int = option(7, "With --vs: how often each figure is measured.", minimum=1)
    threads: int | None = option(
        None,
        "With --vs: CPU threads of both; default is OMP_NUM_THREADS, else every usable core.",
        minimum=1,
    )
    accuracy_prompts: int = option(
        20, "With --vs: replies over which our numbers are held beside float32; 0 leaves it out."
    )
    accuracy_tokens: int = option(200, "With --vs: tokens of each of those replies.", minimum=1)
    quick: bool = option(
        False, "With --vs: tiny random weights, two short rounds; shows that it runs, not how fast."
    )
    data_dir: Path | None = option(
        None, "With --vs: folder of the models; default is the platform's user data folder."
    )

    @property
    def num_rounds(self) -> int:
        """`rounds`, or the two of a quick run."""
        return 2 if self.quick else self.rounds

    def shapes(self, load: LoadSettings) -> Shapes:
        """What is asked for; the tiny model gets short prompts, under the same keys.

        Raises ConfigError.
        """
        prefills = named_prefills(self.prefill)
        if not self.quick:
            return Shapes(load.levels, load.prompt_tokens, prefills)
        short = {name: min(tokens, 64) for name, tokens in prefills.items()}
        return Shapes(
            load.levels, 32, short, new_tokens=4, reply_tokens=6, shared=96, system=64, clients=4
        )

    @property
    def sample(self) -> tuple[int, int]:
        """Replies over which accuracy is taken, and tokens of each."""
        return (2, 8) if self.quick else (self.accuracy_prompts, self.accuracy_tokens)
