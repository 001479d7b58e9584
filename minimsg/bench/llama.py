"""llama.cpp on the same shapes, by its own two benchmarks: a short run of theirs is a round.

`llama-bench` reads prompts, `llama-batched-bench` decodes several sequences after one
prompt that it reads once. Their tokens are random, their lengths are those of our prompts,
their settings the defaults but for the threads. Knows their flags and their JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from minimsg.bench.foreign import run
from minimsg.bench.rounds import Figures, Prompt
from minimsg.errors import ConfigError

FACTS = (
    *("build_commit", "backends", "model_type", "model_size", "model_n_params"),
    *("n_batch", "n_ubatch", "n_threads", "type_k", "type_v", "flash_attn"),
)
TIMEOUT_S = 600.0  # of one run, the reading of the file and their own warm-up included


class LlamaBench:
    """The two programs on one file. Satisfies `Side`."""

    def __init__(self, program: Path, gguf: Path, threads: int) -> None:
        """`llama-batched-bench` is beside `program`. Raises ConfigError if a file is not there."""
        self.program = program
        self.batched = program.with_name(program.name.replace("llama-bench", "llama-batched-bench"))
        self.common = ["-m", str(gguf), "-t", str(threads)]
        for file in (self.program, self.batched, gguf):
            if not file.is_file():
                raise ConfigError(f"{file} is no file; README.md says how llama.cpp is built")

    def prefilling(self, prompts: Sequence[Prompt]) -> Figures:
        for prompt in prompts:
            flags = ["-p", str(len(prompt)), "-n", "0", "-r", "1", "-o", "json"]
            yield self._figure([str(self.program), *self.common, *flags], "avg_ts")

    def decoding(self, prompts: Sequence[Prompt], new_tokens: int) -> Figures:
        """Each run begins where ours has come to, so that both have the same context."""
        number, context = len(prompts), len(prompts[0])
        while True:
            shape = {"-npp": context, "-ntg": new_tokens, "-npl": number}
            # One place more for the token by which the prompt is given to all sequences.
            shape["-c"] = number * (context + new_tokens + 1)
            flags = [word for flag, value in shape.items() for word in (flag, str(value))]
            command = [str(self.batched), *self.common, *flags, "-pps", "--output-format", "jsonl"]
            yield self._figure(command, "speed_tg")
            context += new_tokens

    def facts(self) -> dict[str, object]:
        """What `llama-bench` says of itself, of the file and of its settings, for the report."""
        flags = ["-p", "8", "-n", "0", "-r", "1", "-o", "json"]
        said = _first_object(run([str(self.program), *self.common, *flags], TIMEOUT_S))
        return {name: said.get(name) for name in FACTS}

    def _figure(self, command: list[str], key: str) -> float:
        value = _first_object(run(command, TIMEOUT_S)).get(key)
        if not isinstance(value, int | float) or value <= 0:
            raise ConfigError(f"{command[0]} gave no {key}")
        return float(value)


def _first_object(said: str) -> dict[str, object]:
    """The first JSON object in an output: a list's first item, or a line of its own."""
    start = said.find("{")
    try:
        found, _ = json.JSONDecoder().raw_decode(said, max(start, 0))
    except ValueError as error:
        raise ConfigError("llama.cpp's output holds no JSON object") from error
    return dict(found)
