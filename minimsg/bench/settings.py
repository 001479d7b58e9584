"""The settings of both benchmarks; flags are made from them like those of the server.

Torch-free and light: the command's help needs nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from minimsg.config import option
from minimsg.errors import ConfigError

MAX_STREAMS = 1024

TRANSFORMERS, NO_PREFIX_CACHE, ORDINARY = "transformers", "no-prefix-cache", "ordinary"
MASKS = "masks"
RIVALS = {
    TRANSFORMERS: "transformers",
    NO_PREFIX_CACHE: "our engine without its prefix cache",
    ORDINARY: "deterministic mode, beside our engine without it",
    MASKS: "what a grammar costs, beside the rest of a step",
}
"""What `--vs` can name."""


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
    time_limit_s: float = option(300.0, "Seconds that the measurement may take.")
    request_timeout_s: float = option(120.0, "Seconds that one reply may take.")
    api_key: str | None = option(None, "Key to send, if the server wants one.")

    def __post_init__(self) -> None:
        _ = self.levels  # refused now, not after a warm-up

    @property
    def levels(self) -> tuple[int, ...]:
        """`streams` as numbers. Raises ConfigError."""
        parts = [part.strip() for part in self.streams.split(",")]
        if all(part.isdecimal() and 1 <= int(part) <= MAX_STREAMS for part in parts):
            return tuple(int(part) for part in parts)
        raise ConfigError(
            f"--streams {self.streams!r}: wanted are numbers from 1 to {MAX_STREAMS} with commas "
            "between them, such as 1,8,16"
        )


@dataclass(frozen=True)
class Shapes:
    """What is measured with --vs."""

    batches: tuple[int, ...] = (1, 8, 16)
    context: int = 256  # prompt tokens of each sequence; grows by `new_tokens` a round
    prefill: int = 512
    new_tokens: int = 8  # decode steps that are timed in each round
    shared: int = 2000  # prompt tokens that many prompts begin with,
    tail: int = 32  # and those that each has of its own
    clients: int = 16  # that ask at once

    def names(self, vs: str) -> list[str]:
        """The figures of the report, in order."""
        if vs == NO_PREFIX_CACHE:
            return ["warm_prompt", "shared_prompt"]
        return [*(f"decode_{batch}" for batch in self.batches), f"prefill_{self.prefill}"]


@dataclass(frozen=True)
class VersusSettings:
    """`minimsg bench --vs`: the engine beside another library, or beside itself, in one process."""

    dtype: str = option(
        "auto",
        "With --vs: number format of both sides; auto is bfloat16 where the CPU has it in "
        "hardware, else float32.",
        choices=("auto", "float32", "bfloat16", "float16"),
    )
    rounds: int = option(5, "With --vs: how often each figure is measured.", minimum=1)
    threads: int | None = option(
        None,
        "With --vs: CPU threads of both; default is OMP_NUM_THREADS, else every usable core.",
        minimum=1,
    )
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

    @property
    def shapes(self) -> Shapes:
        """The tiny model gets prompts that are shorter, under the same keys."""
        if not self.quick:
            return Shapes()
        return Shapes(context=32, new_tokens=4, shared=96, clients=4)
