"""The decoder of the families that see: rows of a picture instead of embeddings.

A picture's tokens enter as what the tower saw, `see`, which the runner keeps as long as it
is of use (`engine/encodings.py`). Their rotary positions have three axes: time, row and
column, which begin where the text before them ends. Steps without pictures take the plain
decoder's way. Towers are in the families' own files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimsg.kernels.contract import Backend, Pages, Rotation
from minimsg.models import points, watched
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Inputs, Sight
from minimsg.models.layers import Decoder, DecoderLayer, Variant, prefixed
from minimsg.models.pixels import patches_of
from minimsg.models.rope import AxisRotary


class Tower(nn.Module):
    """What turns a picture into tokens; each family has its own."""

    def forward(self, patches: Tensor, rows: int, columns: int) -> Tensor:
        """Patches `(N, values)` to `(1 + levels, rows * columns, hidden)`."""
        raise NotImplementedError

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        """Each tensor by its name in a checkpoint, without the prefix."""
        raise NotImplementedError


class SeeingDecoder(Decoder):
    """A causal language model with a tower."""

    rotary: AxisRotary

    def __init__(
        self, config: ModelConfig, backend: Backend, variant: Variant, tower: Tower, axes: list[int]
    ) -> None:
        """`axes`: which of time, row and column each rotary frequency turns by."""
        super().__init__(config, backend, variant)
        assert config.vision is not None
        self.vision, self.tower = config.vision, tower
        self.rotary = AxisRotary(config.rope, config.head_dim, axes)

    def forward(self, inputs: Inputs, cache: Sequence[Pages]) -> Tensor:
        if inputs.axes is None:
            return super().forward(inputs, cache)
        x = F.embedding(inputs.ids, self._embedding).to(self.norm.weight.dtype)  # (T, hidden)
        rotation = self.rotary.at(inputs.axes, x.dtype)
        if inputs.sight is None:
            self.run_layers(x, rotation, cache, inputs.layout, inputs.watch)
        else:
            x = self._run_seeing(x, inputs.sight, rotation, cache, inputs)
        return self.logits(x[inputs.sample_rows])

    def _run_seeing(
        self, x: Tensor, sight: Sight, rotation: Rotation, cache: Sequence[Pages], inputs: Inputs
    ) -> Tensor:
        """`x` `(T, hidden)` after all layers, its rows of pictures seen."""
        first, *levels = sight.features.to(x.dtype)  # what each of the first layers adds
        x = x.index_copy(0, sight.rows, first)
        layout, watch = inputs.layout, inputs.watch
        if watch is not None:
            watch.visit(points.EMBED, x)
        layers = cast(Iterable[DecoderLayer], self.layers)
        for index, (layer, pages) in enumerate(zip(layers, cache, strict=True)):
            if watch is None:
                layer(x, rotation, pages, layout)
            else:
                watched.run_layer(layer, index, x, rotation, pages, layout, watch)
            if index < len(levels):
                x.index_add_(0, sight.rows, levels[index])
        if watch is not None:
            watched.see_normalized(points.FINAL, self.norm, x, watch)
        return x

    @torch.inference_mode()
    def see(self, pixels: bytes, rows: int, columns: int) -> Tensor:
        vision, factor = self.vision, self.vision.pictures.factor
        patches = patches_of(
            pixels, columns * factor, rows * factor, vision.pictures, vision.patch_size,
            vision.temporal_patch_size,
        )  # fmt: skip
        values = torch.from_numpy(patches).to(self.norm.weight)
        seen: Tensor = self.tower(values, rows, columns)
        return seen

    def checkpoint_tensors(self) -> dict[str, Tensor]:
        return {
            **super().checkpoint_tensors(),
            **prefixed("visual", self.tower.checkpoint_tensors()),
        }
