"""Qwen2.5-VL (arXiv 2502.13923 section 2.1): Qwen2's decoder, and a tower with windows.

The tower is shaped like the decoder (RMSNorm, SwiGLU), with biases. Most of its blocks see
squares of the picture only, `window_size` pixels wide; patches are sorted by window, and
the tokens are sorted back behind the merger. Rotary frequencies of the decoder turn by time,
then row, then column, in three runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn

from minimsg.kernels.contract import Backend, Rotation
from minimsg.models.config import ModelConfig
from minimsg.models.layers import Linear, RMSNorm, Variant, prefixed
from minimsg.models.seeing import SeeingDecoder, Tower
from minimsg.models.vision import (
    Merger,
    PatchEmbedding,
    PlaneRotary,
    VisionAttention,
    norm_tensors,
    places_of,
)
from minimsg.models.vision_config import VisionConfig

EPSILON = 1e-6  # of the tower's norms, whatever the decoder's is


class Model(SeeingDecoder):
    def __init__(self, config: ModelConfig, backend: Backend) -> None:
        assert config.vision is not None
        tower = WindowTower(config.vision, config.hidden_size)
        axes = [axis for axis, count in enumerate(config.vision.sections) for _ in range(count)]
        super().__init__(config, backend, Variant(attention_input_bias=True), tower, axes)


class WindowTower(Tower):
    """Blocks that see windows, and a few that see everything."""

    def __init__(self, config: VisionConfig, hidden_size: int) -> None:
        super().__init__()
        self.config = config
        self.patch_embedding = PatchEmbedding(config, bias=False)
        self.rotary = PlaneRotary(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_blocks))
        norm = RMSNorm(config.hidden_size, EPSILON)
        self.merger = Merger(config, hidden_size, norm, ("ln_q", "mlp.0", "mlp.2"))

    def forward(self, patches: Tensor, rows: int, columns: int) -> Tensor:
        merge, device = self.config.merge_size, patches.device
        side = self.config.window_size // merge // self.config.patch_size
        order, sizes = windows_of(rows, columns, side, device)
        lengths = [size * merge**2 for size in sizes]
        x = _sorted(self.patch_embedding(patches), order)
        rotation = self.rotary(_sorted(places_of(rows, columns, merge, device), order))
        for index, block in enumerate(self.blocks):
            is_full = index in self.config.full_blocks
            block(x, rotation, [len(x)] if is_full else lengths)
        tokens: Tensor = self.merger(x)
        return tokens[order.argsort()][None]

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        tensors = prefixed("patch_embed", self.patch_embedding.checkpoint_tensors())
        for index, block in enumerate(cast(Iterable[Block], self.blocks)):
            tensors |= prefixed(f"blocks.{index}", block.checkpoint_tensors())
        return tensors | prefixed("merger", self.merger.checkpoint_tensors())


class Block(nn.Module):
    """Attention, then SwiGLU, each on a normalized input and added to the residual stream."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        hidden, self.width = config.hidden_size, config.intermediate_size
        self.attention_norm = RMSNorm(hidden, EPSILON)
        self.attention = VisionAttention(config)
        self.mlp_norm = RMSNorm(hidden, EPSILON)
        self.gate_up = Linear(hidden, 2 * self.width, bias=True, is_gated=True)
        self.down = Linear(self.width, hidden, bias=True)

    def forward(self, x: Tensor, rotation: Rotation, lengths: list[int]) -> None:
        """Adds to `x` `(N, H)` in place."""
        self.attention(x, self.attention_norm(x), rotation, lengths)
        self.down(self.gate_up(x, self.mlp_norm), add_to=x)

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {
            **norm_tensors("norm1", self.attention_norm),
            **prefixed("attn", self.attention.checkpoint_tensors()),
            **norm_tensors("norm2", self.mlp_norm),
            **self.gate_up.rows("mlp.gate_proj", 0, self.width),
            **self.gate_up.rows("mlp.up_proj", self.width),
            **self.down.rows("mlp.down_proj"),
        }


def windows_of(
    rows: int, columns: int, side: int, device: torch.device
) -> tuple[Tensor, list[int]]:
    """Tokens of a picture in the order of their windows, `side` tokens wide; each one's size."""
    tokens = torch.arange(rows * columns, device=device).view(rows, columns)
    windows = [
        tokens[row : row + side, column : column + side].flatten()
        for row in range(0, rows, side)
        for column in range(0, columns, side)
    ]
    return torch.cat(windows), [len(window) for window in windows]


def _sorted(patches: Tensor, order: Tensor) -> Tensor:
    """Patches `(N, ...)` in the order of their tokens."""
    per_token = len(patches) // len(order)
    return patches.view(len(order), per_token, -1)[order].view(len(patches), -1)
