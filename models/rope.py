"""Rotary position embedding: the frequencies of each kind, and the angles of positions.

Frequencies are float32 and computed in the order of operations that transformers uses,
so that angles agree at positions in the thousands. The kinds are described in
`rope_config.py`.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor

from minimsg.kernels.contract import Rotation
from minimsg.models.rope_config import DefaultRope, LinearRope, Llama3Rope, Rope, YarnRope

BLOCK: Final = 4096  # positions of which the angles are worked out at once


class Rotary:
    """Positions to rotations; on a CPU out of a table that grows with the longest sequence seen.

    A block of the table is always computed whole, so a position's numbers never depend on
    which others a step has. Elsewhere angles are computed in each step: a captured graph
    could not follow a table that moves.
    """

    def __init__(self, rope: Rope, head_dim: int) -> None:
        self._frequencies = inverse_frequencies(rope, head_dim)
        self._attention_factor = attention_factor(rope)
        self._cos = self._sin = torch.empty(0, head_dim)  # (positions, D)

    def __call__(self, positions: Tensor, dtype: torch.dtype, reach: int) -> Rotation:
        """The rotation of tokens at `positions` `(T,)`, each below `reach`, in `dtype`."""
        if positions.device.type != "cpu":
            return self._rotation(positions[:, None], dtype)
        if reach > len(self._cos) or self._cos.dtype != dtype:
            blocks = [self._turn(block) for block in torch.arange(_up(reach)).view(-1, BLOCK, 1)]
            cosines, sines = zip(*blocks, strict=True)
            self._cos, self._sin = torch.cat(cosines).to(dtype), torch.cat(sines).to(dtype)
        cos, sin = (table.index_select(0, positions) for table in (self._cos, self._sin))
        return Rotation(cos[:, None], sin[:, None])

    def _rotation(self, positions: Tensor, dtype: torch.dtype) -> Rotation:
        cos, sin = self._turn(positions)
        return Rotation(cos[:, None].to(dtype), sin[:, None].to(dtype))

    def _turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine, `(T, D)` float32 each, of positions `(T, 1)` or `(T, D / 2)`."""
        self._frequencies = self._frequencies.to(positions.device)
        angles = positions.float() * self._frequencies  # (T, D / 2)
        cos, sin = angles.cos() * self._attention_factor, angles.sin() * self._attention_factor
        return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


class AxisRotary(Rotary):
    """Of a model that sees: a part of a picture has a time, a row and a column (arXiv 2409.12191).

    Each frequency turns by one of the three. What is text has three equal ones: its numbers
    are those of `Rotary`.
    """

    def __init__(self, rope: Rope, head_dim: int, axes: list[int]) -> None:
        """`axes` `(D / 2,)`: 0, 1 or 2 for each frequency."""
        super().__init__(rope, head_dim)
        self._axes = torch.tensor(axes, device="cpu")

    def at(self, positions: Tensor, dtype: torch.dtype) -> Rotation:
        """The rotation of tokens at `positions` `(3, T)`, in `dtype`."""
        self._axes = self._axes.to(positions.device)
        return self._rotation(positions.index_select(0, self._axes).T, dtype)


def _up(reach: int) -> int:
    """`reach` in whole blocks."""
    return max(1, -(-reach // BLOCK)) * BLOCK


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
