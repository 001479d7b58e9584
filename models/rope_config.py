"""Which rotary position embedding a config asks for, in old and new spelling.

Old hub configs have `rope_theta` and `rope_scaling {type | rope_type, ...}` at the top,
transformers 5 writes one `rope_parameters`. Torch-free; the frequencies themselves are
computed in `rope.py`. Everything in these objects changes the maths, so a key that the
kind does not know is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from minimsg.errors import UnsupportedModel
from minimsg.fields import Fields

DEFAULT_THETA = 10_000.0  # RoFormer (arXiv 2104.09864) section 3.2.2


@dataclass(frozen=True)
class DefaultRope:
    """RoPE as published (arXiv 2104.09864)."""

    theta: float


@dataclass(frozen=True)
class LinearRope:
    """Positions divided by `factor` (arXiv 2306.15595)."""

    theta: float
    factor: float


@dataclass(frozen=True)
class Llama3Rope:
    """Long wavelengths divided by `factor`, short ones kept, a ramp between (Llama 3.1)."""

    theta: float
    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int


@dataclass(frozen=True)
class YarnRope:
    """YaRN (arXiv 2309.00071) section 3.2, and its attention factor, section 3.3."""

    theta: float
    factor: float
    original_context: int
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True


Rope = DefaultRope | LinearRope | Llama3Rope | YarnRope

KEYS = {
    "default": set[str](),
    "linear": {"factor"},
    "llama3": {
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "original_max_position_embeddings",
    },
    "yarn": {
        "factor",
        "original_max_position_embeddings",
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "truncate",
    },
}
COMMON_KEYS = {
    "type",
    "rope_type",
    "rope_theta",
    "finetuned",
    "original_max_position_embeddings",  # says what was, where the kind does not use it
}
NEUTRAL_IF_ONE = {"partial_rotary_factor", "factor", "attention_factor"}


def parse_rope(config: Fields) -> Rope:
    """The embedding that `config` (a whole config.json) asks for.

    Raises:
        UnsupportedModel: a kind, or a key of it, that is not understood.
        CheckpointError: a value of a wrong type, or a missing one.
    """
    scaling = config.nested("rope_scaling")
    rope = scaling if scaling.data else config.nested("rope_parameters")
    kind = rope.text("rope_type", rope.text("type", "default"))
    if kind not in KEYS:
        raise UnsupportedModel(f"{rope.source}: rope type {kind!r}; known are {', '.join(KEYS)}")
    _refuse_unknown_keys(rope, kind)

    theta = rope.number("rope_theta", _top_level_theta(config), above=1.0)
    if kind == "linear":
        return LinearRope(theta, rope.number("factor"))
    if kind == "llama3":
        return _llama3(rope, theta, _original_context(config, rope))
    if kind == "yarn":
        return _yarn(config, rope, theta)
    return DefaultRope(theta)


def _top_level_theta(config: Fields) -> float:
    return config.number("rope_theta", DEFAULT_THETA, above=1.0)


def _refuse_unknown_keys(rope: Fields, kind: str) -> None:
    for key, value in rope.data.items():
        is_neutral = key in NEUTRAL_IF_ONE and value == 1
        if not is_neutral and key not in COMMON_KEYS | KEYS[kind]:
            raise UnsupportedModel(f"{rope.source}: {key} = {value!r} with rope type {kind!r}")


def _original_context(config: Fields, rope: Fields) -> int:
    """The context before it was extended. transformers looks in the same order."""
    key = "original_max_position_embeddings"
    for fields in (config, rope):
        if key in fields:
            return fields.integer(key)
    return config.integer("max_position_embeddings")


def _llama3(rope: Fields, theta: float, original_context: int) -> Llama3Rope:
    parsed = Llama3Rope(
        theta=theta,
        factor=rope.number("factor"),
        low_freq_factor=rope.number("low_freq_factor"),
        high_freq_factor=rope.number("high_freq_factor"),
        original_context=original_context,
    )
    if not 0 < parsed.low_freq_factor < parsed.high_freq_factor:
        raise UnsupportedModel(f"{rope.source}: needs 0 < low_freq_factor < high_freq_factor")
    return parsed


def _yarn(config: Fields, rope: Fields, theta: float) -> YarnRope:
    original = _original_context(config, rope)
    extension = config.integer("max_position_embeddings") / original
    return YarnRope(
        theta=theta,
        factor=rope.number("factor", extension),
        original_context=original,
        attention_factor=rope.optional_number("attention_factor"),
        beta_fast=rope.number("beta_fast", 32.0),
        beta_slow=rope.number("beta_slow", 1.0),
        mscale=rope.optional_number("mscale"),
        mscale_all_dim=rope.optional_number("mscale_all_dim"),
        truncate=rope.boolean("truncate", True),
    )
