"""The KV cache: for each layer two tensors of pages, read and written by the kernels.

Knows shapes and bytes; which page is whose is the scheduler's business. How many
pages there are is decided in `memory.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from minimsg.kernels.contract import Pages
from minimsg.models.contract import PagedSpec


class PagedKVCache:
    """Keys and values of every layer, `(num_pages, page_size, Hkv, D)` each.

    Memory is not cleared, at the start or when a page changes hands: no kernel reads a
    slot beyond a sequence's context, and the operating system hands it out lazily.
    """

    def __init__(
        self,
        specs: Sequence[PagedSpec],
        *,
        num_pages: int,
        page_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.num_pages, self.page_size = num_pages, page_size
        self.layers: list[Pages] = []
        for spec in specs:
            shape = (num_pages, page_size, spec.num_kv_heads, spec.head_dim)
            key = torch.empty(shape, dtype=dtype, device=device)
            self.layers.append(Pages(key, torch.empty_like(key)))

    @property
    def num_bytes(self) -> int:
        """Memory of all layers when every page has been touched."""
        return sum(pages.key.nbytes + pages.value.nbytes for pages in self.layers)


def page_bytes(specs: Sequence[PagedSpec], page_size: int, dtype: torch.dtype) -> int:
    """Bytes of one page over all layers, keys and values."""
    return sum(2 * page_size * spec.num_kv_heads * spec.head_dim * dtype.itemsize for spec in specs)
