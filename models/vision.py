"""What the towers of the families that see share: patches, attention among them, the merger.

A tower is a transformer over the patches of one picture. Patches that become one token
follow each other, so the merger is a reshape; each knows its row and column by rotary
positions of two axes (arXiv 2409.12191 section 2.1). Linear layers are those of `layers.py`,
so a backend that has an operator for them runs these, too. Knows one picture, no batch and
no decoder: that is `seeing.py`.

Rows N are the patches of the picture, H is the tower's width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimsg.kernels.contract import Rotation
from minimsg.models.layers import Linear
from minimsg.models.vision_config import VisionConfig


class PatchEmbedding(nn.Module):
    """Patches `(N, values)` to `(N, H)`: a convolution whose stride is its size is a product."""

    def __init__(self, config: VisionConfig, *, bias: bool) -> None:
        super().__init__()
        self.proj = Linear(config.patch_values, config.hidden_size, bias=bias)
        side, frames = config.patch_size, config.temporal_patch_size
        self.shape = (config.hidden_size, 3, frames, side, side)  # as it is stored

    def forward(self, patches: Tensor) -> Tensor:
        embedded: Tensor = self.proj(patches)
        return embedded

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        tensors = self.proj.rows("proj")
        return {**tensors, "proj.weight": tensors["proj.weight"].view(self.shape)}


class VisionAttention(nn.Module):
    """Attention without a mask: all patches of a stretch see each other."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size, bias=True)
        self.proj = Linear(config.hidden_size, config.hidden_size, bias=True)

    def forward(self, x: Tensor, normed: Tensor, rotation: Rotation, lengths: list[int]) -> None:
        """Adds to `x` `(N, H)` in place. `lengths` of the stretches add up to N."""
        heads = self.qkv(normed).view(len(x), 3 * self.num_heads, -1)
        rotated = rotation.rotate(heads[:, : 2 * self.num_heads].float()).to(heads.dtype)
        query, key = rotated.chunk(2, dim=1)  # (N, heads, D)
        value = heads[:, 2 * self.num_heads :]
        stretches = zip(*(part.split(lengths) for part in (query, key, value)), strict=True)
        attended = torch.cat([_attend(*stretch) for stretch in stretches])
        self.proj(attended, add_to=x)

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {**self.qkv.rows("qkv"), **self.proj.rows("proj")}


def _attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """`(n, heads, D)` each, to `(n, heads * D)`."""
    query, key, value = (part.transpose(0, 1)[None] for part in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value)[0].transpose(0, 1).flatten(1)


class Merger(nn.Module):
    """Patches `(N, H)` to tokens `(N / merge**2, hidden)`, hidden being the decoder's.

    The norm is of a patch, or (`is_late`) of the patches of a token together.
    """

    def __init__(
        self, config: VisionConfig, hidden_size: int, norm: nn.Module, names: tuple[str, str, str]
    ) -> None:
        """`names` of the norm and the two linear layers in a checkpoint."""
        super().__init__()
        self.width = config.hidden_size * config.merge_size**2
        self.norm, self.names = norm, names
        self.first = Linear(self.width, self.width, bias=True)
        self.second = Linear(self.width, hidden_size, bias=True)
        self.is_late = _size(norm) == self.width

    def forward(self, x: Tensor) -> Tensor:
        merged = x.view(-1, self.width) if self.is_late else x
        normed = self.norm(merged).view(-1, self.width)
        tokens: Tensor = self.second(F.gelu(self.first(normed)))
        return tokens

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        norm, first, second = self.names
        return {
            **norm_tensors(norm, self.norm),
            **self.first.rows(first),
            **self.second.rows(second),
        }


def norm_tensors(name: str, norm: nn.Module) -> dict[str, Tensor]:
    """Weight and, if it has one, bias of a norm."""
    return {f"{name}.{key}": parameter for key, parameter in norm.named_parameters()}


def _size(norm: nn.Module) -> int:
    return len(next(norm.parameters()))


class PlaneRotary:
    """Rotations of patches by row and column: half of the frequencies each."""

    def __init__(self, config: VisionConfig) -> None:
        size = config.hidden_size // config.num_heads // 2
        exponents = torch.arange(0, size, 2, dtype=torch.float, device="cpu") / size
        self._frequencies = 1.0 / config.rope_theta**exponents  # (D / 4,)

    def __call__(self, places: Tensor) -> Rotation:
        """Of patches at `places` `(N, 2)`, in float32."""
        self._frequencies = self._frequencies.to(places.device)
        angles = (places[..., None].float() * self._frequencies).flatten(1)  # (N, D / 2)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        return Rotation(torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1))


def places_of(rows: int, columns: int, merge: int, device: torch.device) -> Tensor:
    """Row and column of each patch `(N, 2)`, of a picture of `rows * columns` tokens."""
    high, wide = (
        torch.arange(rows * merge, device=device),
        torch.arange(columns * merge, device=device),
    )
    grid = torch.stack(torch.meshgrid(high, wide, indexing="ij"), -1)
    return grid.view(rows, merge, columns, merge, 2).transpose(1, 2).reshape(-1, 2)
