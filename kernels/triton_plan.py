"""What the Triton kernels are launched with: block sizes, tiles, shares, and a layout's plan.

Knows shapes, number formats and layouts; neither triton nor what a kernel does with a block
(`triton_kernels.py`). Who launches is `triton_paged.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain, pairwise

import torch
from torch import Tensor

from minimsg.kernels.contract import Layout

MIN_SPLIT_TOKENS = 128  # of one share: below, merging costs more than it wins
MAX_SPLITS = 64
PROGRAMS_A_PROCESSOR = 4  # that hide each other's waiting for memory
BLOCK_BYTES = 16 << 10  # of one block of keys: two, and of values, fit 99 KiB (sm_86, sm_120)


@dataclass(frozen=True)
class Blocks:
    """The block sizes of one shape of heads, and how each kernel is launched."""

    group: int  # query heads of one kv head, padded to a power of two
    head_dim: int  # likewise; at least 16, as `tl.dot` wants
    keys: int  # of one block
    decode_rows: int  # the group once more, at least 16
    prefill_rows: int  # tokens times the padded group
    num_warps: int  # of a prefill program

    @property
    def tokens(self) -> int:
        """New tokens of one tile."""
        return self.prefill_rows // self.group


def blocks_for(group: int, head_dim: int, dtype: torch.dtype) -> Blocks:
    """Blocks whose keys and values fit the memory of a processor, and rows its registers."""
    head_dim_p = max(16, power_of_two(head_dim))
    group_p = power_of_two(group)
    is_wide = head_dim_p * dtype.itemsize > 256  # 128 rows of accumulators would spill
    rows = 32 if dtype == torch.float32 else 64 if is_wide else 128
    return Blocks(
        group=group_p,
        head_dim=head_dim_p,
        keys=min(64, BLOCK_BYTES // (head_dim_p * dtype.itemsize)),
        decode_rows=max(16, group_p),
        prefill_rows=max(rows, group_p),
        num_warps=8 if rows == 128 else 4,
    )


@dataclass(frozen=True)
class Plan:
    """What the kernels read of a layout, on the device."""

    starts: Tensor  # (B + 1,) int32, the layout's `query_starts`
    lengths: Tensor  # (B,) int32, its `context_lens`
    decoding: Tensor  # (N,) int32, the sequences with one new token
    tiles: Tensor  # (M, 2) int32, of the others: the sequence, the first of its new tokens
    longest: int  # no sequence of `decoding` has more tokens


@dataclass(frozen=True)
class PlannedLayout(Layout):
    """A layout with its plan, whose tensors may be filled anew between two runs.

    The lists hold for every filling: no sequence is ever longer than `context_lens` has it.
    A CUDA graph is captured with one.
    """

    plan: Plan


def plan_for(layout: Layout, tile_tokens: int) -> Plan:
    """What the kernels read, in one transfer. The tiles with most to see come first."""
    starts, lengths = layout.query_starts, layout.context_lens
    new = [stop - start for start, stop in pairwise(starts)]
    decoding = [sequence for sequence, count in enumerate(new) if count == 1]
    tiles = [
        (lengths[sequence] - count + first, sequence, first)
        for sequence, count in enumerate(new)
        if count > 1
        for first in range(0, count, tile_tokens)
    ]
    flat = [number for _, *tile in sorted(tiles, reverse=True) for number in tile]
    parts = [starts, lengths, decoding, flat]
    numbers = torch.tensor([*chain(*parts)], dtype=torch.int32).to(layout.slots.device)
    on_device = torch.split(numbers, [len(part) for part in parts])
    return Plan(
        starts=on_device[0],
        lengths=on_device[1],
        decoding=on_device[2],
        tiles=on_device[3].view(-1, 2),
        longest=max((lengths[sequence] for sequence in decoding), default=0),
    )


def num_splits(num_programs: int, longest: int, num_processors: int) -> int:
    """Into how many shares each sequence is split: a power of two that fills the device."""
    wanted = math.ceil(num_processors * PROGRAMS_A_PROCESSOR / num_programs)
    useful = math.ceil(longest / MIN_SPLIT_TOKENS)
    return power_of_two(max(1, min(wanted, useful, MAX_SPLITS)))


def power_of_two(number: int) -> int:
    """The next one, from `number` on."""
    return 1 << (number - 1).bit_length()
