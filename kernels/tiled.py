"""Attention whose numbers no neighbour can change: one page of queries at a time.

Each page of a sequence is computed alone and whole, the rows that are not new being
zeros, over all pages up to it. So the shape of every operation follows from a token's
position (and the window), and its row from its offset in the page: how a prompt was cut
into chunks, what was computed before and who else runs cannot reach a bit of the result.
`engine/tiles.py` does the same for the rest of the model. Slow for decoding, as a whole
page is computed for one token. What attention *is* stands in `reference.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages


@dataclass(frozen=True)
class Tile:
    """The new tokens of one sequence that lie in one of its pages."""

    sequence: int
    page: int  # its place in the page table
    rows: slice  # of the T new tokens
    inside: slice  # of the page
    num_tokens: int  # of the sequence, up to the last row


class Backend:
    """Attention in float32, a page of one sequence at a time; bit-equal in every batch."""

    name = "tiled"
    is_batch_invariant = True

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        return None if dtype.is_floating_point else f"{dtype} is not a floating-point format"

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        pages: Pages,
        layout: Layout,
        *,
        scale: float,
        window: int | None = None,
    ) -> Tensor:
        pages.key.view(-1, *key.shape[1:])[layout.slots] = key
        pages.value.view(-1, *value.shape[1:])[layout.slots] = value

        page_size = pages.key.shape[1]
        output = torch.zeros_like(query)
        for tile in _tiles(layout, page_size):
            first = 0 if window is None else max(0, tile.page * page_size - window + 1) // page_size
            table = layout.page_tables[tile.sequence, first : tile.page + 1]
            whole = query.new_zeros(page_size, *query.shape[1:])
            whole[tile.inside] = query[tile.rows]
            length = tile.num_tokens - first * page_size
            keys, values = (_gather(each, table, length) for each in (pages.key, pages.value))
            hidden = _hidden(page_size, len(keys), window, query.device)
            output[tile.rows] = _attend(whole, keys, values, hidden, scale)[tile.inside]
        return output


def _tiles(layout: Layout, page_size: int) -> Iterator[Tile]:
    for sequence, context in enumerate(layout.context_lens):
        start, stop = layout.query_starts[sequence : sequence + 2]
        offset = context - stop  # from a row to its position
        while start < stop:
            page, inside = divmod(start + offset, page_size)
            count = min(page_size - inside, stop - start)
            yield Tile(
                sequence,
                page,
                rows=slice(start, start + count),
                inside=slice(inside, inside + count),
                num_tokens=start + count + offset,
            )
            start += count


def _gather(pages: Tensor, table: Tensor, length: int) -> Tensor:
    """Whole pages in order, `(slots, Hkv, D)` float32, zero from `length` on."""
    gathered = pages.index_select(0, table).flatten(0, 1).float()
    gathered[length:] = 0  # whatever lies there may be NaN, and 0 * NaN is NaN
    return gathered


def _hidden(num_rows: int, num_keys: int, window: int | None, device: torch.device) -> Tensor:
    """Which keys the rows of the last page must not see: `(rows, keys)` bool."""
    seen = torch.arange(num_keys, device=device)
    seer = seen[-num_rows:, None]
    hidden = seen > seer
    return hidden if window is None else hidden | (seen <= seer - window)


def _attend(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, scale: float) -> Tensor:
    """`(t, Hq, D)` over `(c, Hkv, D)`: the heads of a group are query rows of one head."""
    num_rows, num_heads, head_dim = query.shape
    num_keys, num_kv_heads, _ = key.shape
    rows = query.float().view(num_rows, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3)
    scores = torch.bmm(rows.reshape(num_kv_heads, -1, head_dim), key.permute(1, 2, 0))
    scores = scores.mul_(scale).view(num_kv_heads, -1, num_rows, num_keys)
    weights = scores.masked_fill_(hidden, -torch.inf).softmax(dim=-1)
    attended = torch.bmm(weights.flatten(1, 2), value.transpose(0, 1))  # (Hkv, G * t, D)
    heads = attended.view(num_kv_heads, -1, num_rows, head_dim).permute(2, 0, 1, 3)
    return heads.reshape(num_rows, num_heads, head_dim).to(query.dtype)
