"""Qwen3-VL, dense (arXiv 2511.21631 section 2): Qwen3's decoder, and a tower of plain blocks.

The tower has LayerNorm, GELU and a learned table of positions, which is stretched over each
picture. DeepStack (arXiv 2406.04334): the output of some of its blocks goes through a merger
of its own and is added to the picture's tokens behind the decoder's first layers. Rotary
frequencies of the decoder turn by time, row and column in turn, as far as those of row and
column go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimsg.kernels.contract import Backend, Rotation
from minimsg.models.config import ModelConfig
from minimsg.models.layers import Linear, Variant, prefixed
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

EPSILON = 1e-6  # of the tower's norms
MERGER_NAMES = ("norm", "linear_fc1", "linear_fc2")


class Model(SeeingDecoder):
    def __init__(self, config: ModelConfig, backend: Backend) -> None:
        assert config.vision is not None
        variant = Variant(
            attention_input_bias=config.attention_bias,
            attention_output_bias=config.attention_bias,
            head_norm=True,
        )
        tower = DeepTower(config.vision, config.hidden_size)
        axes = interleaved(config.vision.sections, config.head_dim // 2)
        super().__init__(config, backend, variant, tower, axes)


def interleaved(sections: tuple[int, int, int], num_frequencies: int) -> list[int]:
    """The axis of each frequency: time, row, column in turn; time where the others have ended."""
    axes = [0] * num_frequencies
    for axis in (1, 2):
        for place in range(axis, min(3 * sections[axis], num_frequencies), 3):
            axes[place] = axis
    return axes


class DeepTower(Tower):
    """Blocks that see everything; some of them speak to the decoder's first layers."""

    def __init__(self, config: VisionConfig, hidden_size: int) -> None:
        super().__init__()
        self.config, width = config, config.hidden_size
        self.patch_embedding = PatchEmbedding(config, bias=True)
        self.positions = nn.Parameter(torch.empty(config.num_positions, width))
        self.rotary = PlaneRotary(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_blocks))
        norm = nn.LayerNorm(width, EPSILON)
        self.merger = Merger(config, hidden_size, norm, MERGER_NAMES)
        self.deep_mergers = nn.ModuleList(
            Merger(
                config,
                hidden_size,
                nn.LayerNorm(width * config.merge_size**2, EPSILON),
                MERGER_NAMES,
            )
            for _ in config.deepstack
        )

    def forward(self, patches: Tensor, rows: int, columns: int) -> Tensor:
        merge = self.config.merge_size
        places = places_of(rows, columns, merge, patches.device)
        x = self.patch_embedding(patches)
        x = x + stretched(self.positions, places, (rows * merge, columns * merge)).to(x.dtype)
        rotation = self.rotary(places)
        levels: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            block(x, rotation)
            if index in self.config.deepstack:
                levels.append(self.deep_mergers[len(levels)](x))
        return torch.stack([self.merger(x), *levels])

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        tensors = prefixed("patch_embed", self.patch_embedding.checkpoint_tensors())
        tensors["pos_embed.weight"] = self.positions
        for index, block in enumerate(cast(Iterable[Block], self.blocks)):
            tensors |= prefixed(f"blocks.{index}", block.checkpoint_tensors())
        tensors |= prefixed("merger", self.merger.checkpoint_tensors())
        for index, merger in enumerate(cast(Iterable[Merger], self.deep_mergers)):
            tensors |= prefixed(f"deepstack_merger_list.{index}", merger.checkpoint_tensors())
        return tensors


class Block(nn.Module):
    """Attention, then GELU, each on a normalized input and added to the residual stream."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        hidden, width = config.hidden_size, config.intermediate_size
        self.attention_norm = nn.LayerNorm(hidden, EPSILON)
        self.attention = VisionAttention(config)
        self.mlp_norm = nn.LayerNorm(hidden, EPSILON)
        self.up = Linear(hidden, width, bias=True)
        self.down = Linear(width, hidden, bias=True)

    def forward(self, x: Tensor, rotation: Rotation) -> None:
        """Adds to `x` `(N, H)` in place."""
        self.attention(x, self.attention_norm(x), rotation, [len(x)])
        raised = F.gelu(self.up(self.mlp_norm(x)), approximate="tanh")
        self.down(raised, add_to=x)

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {
            **norm_tensors("norm1", self.attention_norm),
            **prefixed("attn", self.attention.checkpoint_tensors()),
            **norm_tensors("norm2", self.mlp_norm),
            **self.up.rows("mlp.linear_fc1"),
            **self.down.rows("mlp.linear_fc2"),
        }


def stretched(table: Tensor, places: Tensor, size: tuple[int, int]) -> Tensor:
    """A square table of positions `(P, H)` laid over a grid of `size`, corners on corners.

    What it says at `places` `(N, 2)`: `(N, H)` float32, between four entries.
    """
    side = round(len(table) ** 0.5)
    steps = torch.tensor(size, device=places.device).sub_(1).clamp_(min=1)
    exact = places.float() * (side - 1) / steps  # (N, 2)
    low = exact.floor().clamp_(max=side - 1)
    high_share = exact - low
    row, column = low.long().unbind(-1)
    row_share, column_share = high_share[..., None].unbind(1)  # (N, 1)
    below, right = (row + 1).clamp_(max=side - 1), (column + 1).clamp_(max=side - 1)
    values = table.float().view(side, side, -1)
    above = values[row, column] * (1 - column_share) + values[row, right] * column_share
    under = values[below, column] * (1 - column_share) + values[below, right] * column_share
    between: Tensor = above * (1 - row_share) + under * row_share
    return between
