"""What a model's tower has seen, kept while it may be of use again.

A picture is seen once, however many steps its tokens take; so is one that a conversation
sends anew with each turn. Kept by the tenant's name and the digest of the pixels, so that
nobody learns what another has shown; the least recently used goes first. Knows tensors and
digests; which rows of a batch they fill is in `runner.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import torch
from torch import Tensor

from minimsg.engine.types import ImageSpan
from minimsg.errors import GenerationFailed
from minimsg.models.contract import SeeingModel

MAX_BYTES: Final = 256 << 20  # 30 pictures of 1,000 tokens, of a model of 2 B parameters


class Encodings:
    """Features of pictures. Invariant: at most `max_bytes` of them, or a single one."""

    def __init__(self, model: object, max_bytes: int = MAX_BYTES) -> None:
        self._model = model
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, bytes], Tensor] = OrderedDict()
        self.num_bytes = 0

    def of(self, tenant: str, image: ImageSpan) -> Tensor:
        """What the tower makes of an image, `(1 + levels, tokens, hidden)`.

        Raises GenerationFailed if that is not a number.
        """
        key = (tenant, image.digest)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        assert isinstance(self._model, SeeingModel)  # `Engine.check` lets no image in else
        seen = self._model.see(image.pixels, image.rows, image.columns)
        if not torch.isfinite(seen).all():
            raise GenerationFailed("the model's tower gives no numbers for an image")
        self._kept[key] = seen
        self.num_bytes += seen.nbytes
        while self.num_bytes > self._max_bytes and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self.num_bytes -= oldest.nbytes
        return seen

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self.num_bytes = 0
