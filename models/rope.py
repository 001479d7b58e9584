"""Rotary position embedding: the frequencies of each kind, and the rotation of heads.

Frequencies are float32 and computed in the order of operations that transformers uses,
so that angles agree at positions in the thousands. The kinds are described in
`rope_config.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from minimsg.models.rope_config import DefaultRope, LinearRope, Llama3Rope, Rope, YarnRope


@dataclass(frozen=True)
class Rotation:
    """Cosine and sine of a step's angles, `(T, 1, D)` each; the sine's first half is negated."""

    cos: Tensor
    sin: Tensor

    def rotate(self, heads: Tensor) -> Tensor:
        """Turn each pair (i, i + D / 2) of `(T, heads, D)` by its angle."""
        half = heads.shape[-1] // 2
        return torch.addcmul(heads * self.cos, heads.roll(half, -1), self.sin)


class Rotary:
    """Positions to rotations. Holds the frequencies, on the device that asked last."""

    def __init__(self, rope: Rope, head_dim: int) -> None:
        self._frequencies = inverse_frequencies(rope, head_dim)
        self._attention_factor = attention_factor(rope)

    def __call__(self, positions: Tensor, dtype: torch.dtype) -> Rotation:
        """The rotation of tokens at `positions` `(T,)`; angles in float32, result in `dtype`."""
        self._frequencies = self._frequencies.to(positions.device)
        angles = positions[:, None].float() * self._frequencies  # (T, D / 2)
        cos, sin = angles.cos() * self._attention_factor, angles.sin() * self._attention_factor
        cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)
        return Rotation(cos[:, None].to(dtype), sin[:, None].to(dtype))


def inverse_frequencies(rope: Rope, head_dim: int) -> Tensor:
    """Radians a token of each pair of dimensions, `(D / 2,)` float32 on the CPU."""
    exponents = torch.arange(0, head_dim, 2, device="cpu").float() / head_dim
    periods = rope.theta**exponents
    match rope:
        case DefaultRope():
            return 1.0 / periods
        case LinearRope():
            return 1.0 / periods / rope.factor
        case Llama3Rope():
            return _llama3(rope, 1.0 / periods)
        case YarnRope():
            return _yarn(rope, periods, head_dim)


def attention_factor(rope: Rope) -> float:
    """What cosine and sine are multiplied with: 1, except in YaRN (section 3.3, eq. 22)."""
    if not isinstance(rope, YarnRope):
        return 1.0
    if rope.attention_factor is not None:
        return rope.attention_factor
    if rope.mscale and rope.mscale_all_dim:
        return _mscale(rope.factor, rope.mscale) / _mscale(rope.factor, rope.mscale_all_dim)
    return _mscale(rope.factor, 1.0)


def _mscale(factor: float, weight: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _llama3(rope: Llama3Rope, frequencies: Tensor) -> Tensor:
    wavelengths = 2 * math.pi / frequencies
    turns = rope.original_context / wavelengths  # in the original context
    kept = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    ramp = (1 - kept) * frequencies / rope.factor + kept * frequencies
    slow = torch.where(turns < rope.low_freq_factor, frequencies / rope.factor, ramp)
    return torch.where(turns > rope.high_freq_factor, frequencies, slow)


def _yarn(rope: YarnRope, periods: Tensor, head_dim: int) -> Tensor:
    low = _dimension_that_turns(rope.beta_fast, rope, head_dim)
    high = _dimension_that_turns(rope.beta_slow, rope, head_dim)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001  # no division by zero; as transformers does
    dimensions = torch.arange(head_dim // 2, device="cpu").float()
    kept = 1 - ((dimensions - low) / (high - low)).clamp(0, 1)
    return 1.0 / (rope.factor * periods) * (1 - kept) + 1.0 / periods * kept


def _dimension_that_turns(times: float, rope: YarnRope, head_dim: int) -> float:
    """The pair of dimensions that turns `times` times in the original context (eq. 17-18)."""
    ratio = rope.original_context / (times * 2 * math.pi)
    return head_dim * math.log(ratio) / (2 * math.log(rope.theta))
