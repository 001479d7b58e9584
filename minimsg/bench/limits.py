"""Physical limits, measured in the same run, and the share of them that our side reaches.

Decoding one sequence reads every weight once for each token, so memory is the limit:
read bandwidth / bytes. Reading a prompt multiplies each weight with each token: matmul
speed / operations. Knows the shape of the dense decoder, by its `ModelConfig`; keys and
values are counted at the middle of what was timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Final

from minimsg.bench.rounds import Round
from minimsg.bench.settings import Shapes
from minimsg.models.config import ModelConfig

# Of a weight; int8 has a scale of 2 bytes for each 32 (`kernels/cpu_native.py`).
WEIGHT_BYTES: Final = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "int8": 1 + 2 / 32}
KEY_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 2}


@dataclass(frozen=True)
class Limit:
    """What the machine allows for one figure, in tokens per second, and the share reached."""

    tokens_per_s: float
    share: float


@dataclass(frozen=True)
class Limits:
    """The measured speeds and, for each figure that has one, its limit."""

    read_gb_per_s: float  # median of all rounds
    matmul_gflops: dict[str, float]  # by format; the fastest is taken for all
    decode_bytes: int  # that one token reads
    figures: dict[str, Limit]

    def words(self) -> str:
        """In one line."""
        speeds = ", ".join(f"{name} {speed:.0f}" for name, speed in self.matmul_gflops.items())
        limits = ", ".join(f"{key} {one.tokens_per_s:.0f}" for key, one in self.figures.items())
        return (
            f"limits: {self.read_gb_per_s:.1f} GB/s, {self.decode_bytes / 1e6:.0f} MB a token; "
            f"GFLOP/s of products: {speeds}; so tokens/s at most: {limits}"
        )


def find_limits(
    config: ModelConfig,
    dtype: str,
    shapes: Shapes,
    figures: dict[str, list[Round]],
    matmul_gflops: dict[str, float],
) -> Limits:
    """The limits of a run in which our side had `dtype`."""
    limits = {}
    num_rounds = max(map(len, figures.values()))
    context = shapes.context + shapes.new_tokens * num_rounds // 2
    read = decode_bytes(config, dtype, context)
    if alone := figures.get("decode_1"):
        limits["decode_1"] = _limit(alone, [1e9 * one.read_gb_per_s / read for one in alone])
    for name, tokens in shapes.prefills.items():
        speed = 1e9 * max(matmul_gflops.values()) / prefill_flop(config, tokens)
        limit = _limit(figures[name], [speed] * len(figures[name]))
        if limit.share <= 1:  # else torch's products are slower than what was measured: no limit
            limits[name] = limit
    bandwidth = median([one.read_gb_per_s for rounds in figures.values() for one in rounds])
    return Limits(bandwidth, matmul_gflops, read, limits)


def decode_bytes(config: ModelConfig, dtype: str, context: int) -> int:
    """What one token of one sequence reads: every weight, and the keys and values before it."""
    weights = num_weights(config, has_head=True) * WEIGHT_BYTES[dtype]
    cached = 2 * config.num_layers * config.num_kv_heads * config.head_dim * context
    return round(weights + cached * KEY_BYTES[dtype])


def num_weights(config: ModelConfig, *, has_head: bool) -> int:
    """Weights that each token is multiplied with: the matrices, without the embedding."""
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    attention = config.hidden_size * (2 * queries + 2 * keys)
    mlp = 3 * config.hidden_size * config.intermediate_size
    head = config.vocab_size * config.hidden_size
    return config.num_layers * (attention + mlp) + (head if has_head else 0)


def prefill_flop(config: ModelConfig, tokens: int) -> float:
    """Operations for one of `tokens` tokens of a prompt, which sees half of them; no head."""
    attention = 4 * config.num_layers * config.num_heads * config.head_dim * tokens / 2
    return 2 * num_weights(config, has_head=False) + attention


def _limit(rounds: list[Round], speeds: list[float]) -> Limit:
    """Medians; each round is held beside the bandwidth of its own moment."""
    shares = [one.ours / speed for one, speed in zip(rounds, speeds, strict=True)]
    return Limit(median(speeds), median(shares))
