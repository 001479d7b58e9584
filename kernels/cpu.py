"""The CPU with stock torch: linear layers by oneDNN; gather the pages, then SDPA.

A step's layout is turned into a plan once and reused by all layers. Decode rows of
similar context share one padded SDPA call; a sequence with several new tokens gets
its own. Gathering into scratch that is kept saves the page faults of fresh memory,
and grouped query heads are query rows (decode) or a stride-0 expansion of the keys
(prefill): SDPA's own `enable_gqa` is several times slower in bfloat16 on a CPU.

A plain matrix is brought into oneDNN's order inside each product; one that is held in that
order as well saves a factor of 1.2 to 1.7 with several rows (float32, AVX2, 135M shapes). The
operators are those that torch.compile itself calls.

What attention *is* stands in `reference.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.kernels.contract import Formats, Layout, Norm, Pages

logger = logging.getLogger(__name__)

MAX_DECODE_SLOTS: Final = 8192  # of one padded decode call; more would leave the CPU's caches
MAX_ORDERED_BYTES: Final = 2 << 30  # of weights that are in memory twice
MAX_ORDERED_ROWS: Final = 64  # beyond, the plain product of bfloat16 is as fast or faster

Rows = slice | Tensor  # rows of the T new tokens


@dataclass(frozen=True)
class Matrix:
    """A weight `(N, K)` with its bias, and once more in oneDNN's order if there is room."""

    weight: Tensor
    bias: Tensor | None
    ordered: Tensor | None
    is_gated: bool


@dataclass(frozen=True)
class DecodeGroup:
    """N sequences with one new token each, padded to the longest context L of them."""

    rows: Rows  # N of them
    slots: Tensor  # (N * L,) int64; padding repeats a sequence's first slot, so it is finite
    mask: Tensor | None  # (N, 1, 1, L): 0, and -inf on padding; None without padding


@dataclass(frozen=True)
class PrefillChunk:
    """One sequence with t new tokens that see the c last tokens of its context."""

    rows: Rows  # t of them
    slots: Tensor  # (c,) int64
    mask: Tensor | None  # (t, c): 0, and -inf on what must not be seen; None: causal, t == c


Plan = list[DecodeGroup | PrefillChunk]


@dataclass(frozen=True)
class _Sequence:
    """One sequence of a layout, cut to what a window leaves visible."""

    index: int
    rows: range
    first: int  # position of the first key that any new token sees
    context: int

    @property
    def num_keys(self) -> int:
        return self.context - self.first


class Backend:
    """Attention with stock torch. Holds scratch: one instance an engine, one thread at a time."""

    name = "cpu"
    is_batch_invariant = False
    order = "cpu: as it is"

    def __init__(self) -> None:
        self._keys = self._values = torch.empty(0, 0)  # scratch (slots, Hkv * D)
        self._layout: Layout | None = None
        self._plans: dict[tuple[int | None, int, torch.dtype], Plan] = {}  # of `_layout`
        self._ordered_bytes = 0

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        if device.type != "cpu":
            return f"it runs on the CPU only, not on {device.type}"
        if dtype not in (torch.float32, torch.bfloat16, torch.float16):
            return f"it knows float32, bfloat16 and float16, not {dtype}"
        return None

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
        _, num_kv_heads, head_dim = key.shape
        keys = pages.key.view(-1, num_kv_heads * head_dim)  # (slots, Hkv * D)
        values = pages.value.view(-1, num_kv_heads * head_dim)
        keys.index_copy_(0, layout.slots, key.reshape(len(key), -1))
        values.index_copy_(0, layout.slots, value.reshape(len(value), -1))

        output = torch.empty_like(query)
        for part in self._plan(layout, window, pages.key.shape[1], query.dtype):
            k, v = self._gather(keys, values, part.slots)
            k, v = (gathered.view(-1, num_kv_heads, head_dim) for gathered in (k, v))
            attend = _decode if isinstance(part, DecodeGroup) else _prefill
            output[part.rows] = attend(query[part.rows], k, v, part.mask, scale)
        return output

    def formats(self, dtype: torch.dtype) -> Formats:
        return Formats(dtype, dtype, dtype)

    def pack(self, weight: Tensor, dtype: torch.dtype, *, is_gated: bool) -> Tensor:
        return weight.to(dtype)

    def packed_shape(self, shape: torch.Size, *, is_gated: bool) -> torch.Size:
        return shape  # there is no int8 here

    def matrix(
        self, packed: Tensor, bias: Tensor | None, shape: torch.Size, *, is_gated: bool
    ) -> Matrix:
        self._ordered_bytes += packed.nbytes
        has_room = self._ordered_bytes <= MAX_ORDERED_BYTES
        return Matrix(packed, bias, _ordered(packed) if has_room else None, is_gated)

    def linear(self, x: Tensor, matrix: Matrix, norm: Norm | None, add_to: Tensor | None) -> Tensor:
        if norm is not None:
            x = F.rms_norm(x, norm.weight.shape, norm.weight, norm.epsilon)
        output = _product(x, matrix)
        if matrix.is_gated:
            gate, up = output.chunk(2, dim=-1)
            output = F.silu(gate).mul_(up)
        return output if add_to is None else add_to.add_(output)

    def _plan(self, layout: Layout, window: int | None, page_size: int, dtype: torch.dtype) -> Plan:
        """The plan of `layout`, made for the first layer that asks for this window."""
        if layout is not self._layout:
            self._layout, self._plans = layout, {}
        key = (window, page_size, dtype)
        if key not in self._plans:
            self._plans[key] = list(_parts(layout, window, page_size, dtype))
        return self._plans[key]

    def _gather(self, keys: Tensor, values: Tensor, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Rows `slots` of both, in scratch that grows and is overwritten by the next call."""
        count, width = len(slots), keys.shape[1]
        held = self._keys
        if held.dtype != keys.dtype or held.shape[1] != width or len(held) < count:
            self._keys = torch.empty(count, width, dtype=keys.dtype)
            self._values = torch.empty_like(self._keys)
        return (
            torch.index_select(keys, 0, slots, out=self._keys[:count]),
            torch.index_select(values, 0, slots, out=self._values[:count]),
        )


def _ordered(weight: Tensor) -> Tensor | None:
    """`weight` in oneDNN's order; None where there is no such form of it."""
    try:
        ordered: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
    except (RuntimeError, AttributeError) as error:  # not this dtype on this CPU, or no oneDNN
        logger.debug("weights stay plain: %s", error)
        return None
    return ordered


def _product(x: Tensor, matrix: Matrix) -> Tensor:
    """`x W^T + b`. One row of float32 is bound by memory, and the plain call is the lighter."""
    is_float32 = x.dtype is torch.float32
    if (
        matrix.ordered is None
        or (is_float32 and len(x) == 1)
        or (not is_float32 and len(x) > MAX_ORDERED_ROWS)
    ):
        return F.linear(x, matrix.weight, matrix.bias)
    product: Tensor = torch.ops.mkldnn._linear_pointwise(
        x, matrix.ordered, matrix.bias, "none", [], ""
    )
    return product


def _decode(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """`(N, Hq, D)` over `(N * L, Hkv, D)`: the heads of a group are query rows of one head."""
    num, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    query = query.reshape(num, num_kv_heads, num_heads // num_kv_heads, head_dim)
    key = key.view(num, -1, num_kv_heads, head_dim).transpose(1, 2)  # (N, Hkv, L, D)
    value = value.view(num, -1, num_kv_heads, head_dim).transpose(1, 2)
    attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    return attended.reshape(num, num_heads, head_dim)


def _prefill(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """`(t, Hq, D)` over `(c, Hkv, D)`: kv heads are the batch, the heads of a group its heads."""
    num_new, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    group = num_heads // num_kv_heads
    query = query.reshape(num_new, num_kv_heads, group, head_dim).permute(1, 2, 0, 3)
    key = key.transpose(0, 1)[:, None].expand(-1, group, -1, -1)  # (Hkv, G, c, D), a view
    value = value.transpose(0, 1)[:, None].expand(-1, group, -1, -1)
    attended = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=mask is None, scale=scale
    )
    return attended.permute(2, 0, 1, 3).reshape(num_new, num_heads, head_dim)


def _parts(
    layout: Layout, window: int | None, page_size: int, dtype: torch.dtype
) -> Iterator[DecodeGroup | PrefillChunk]:
    """Cut a step into SDPA calls: decode rows of similar context together, chunks alone."""
    decoding: dict[int, list[_Sequence]] = {}  # by the power of two: padding less than doubles
    for sequence in _sequences(layout, window):
        if len(sequence.rows) == 1:
            decoding.setdefault(sequence.num_keys.bit_length(), []).append(sequence)
        elif sequence.rows:
            yield _prefill_chunk(layout, sequence, window, page_size, dtype)
    for similar in decoding.values():
        longest = max(sequence.num_keys for sequence in similar)
        per_call = max(1, MAX_DECODE_SLOTS // longest)
        for start in range(0, len(similar), per_call):
            yield _decode_group(layout, similar[start : start + per_call], page_size, dtype)


def _sequences(layout: Layout, window: int | None) -> Iterator[_Sequence]:
    for index, context in enumerate(layout.context_lens):
        rows = range(layout.query_starts[index], layout.query_starts[index + 1])
        first = 0 if window is None else max(0, context - len(rows) - window + 1)
        yield _Sequence(index, rows, first, context)


def _decode_group(
    layout: Layout, sequences: list[_Sequence], page_size: int, dtype: torch.dtype
) -> DecodeGroup:
    tables = layout.page_tables[[sequence.index for sequence in sequences]]
    first = torch.tensor([sequence.first for sequence in sequences])[:, None]
    context = torch.tensor([sequence.context for sequence in sequences])[:, None]
    positions = first + torch.arange(max(sequence.num_keys for sequence in sequences))
    padding = positions >= context  # (N, L)

    positions = torch.where(padding, first, positions)
    slots = tables.gather(1, positions // page_size) * page_size + positions % page_size
    mask = torch.zeros(padding.shape, dtype=dtype).masked_fill_(padding, -torch.inf)
    return DecodeGroup(
        rows=_as_slice([sequence.rows.start for sequence in sequences]),
        slots=slots.flatten(),
        mask=mask[:, None, None] if padding.any() else None,
    )


def _as_slice(rows: list[int]) -> Rows:
    """A slice, which reads without a copy, if the rows follow each other; else an index."""
    if rows == list(range(rows[0], rows[0] + len(rows))):
        return slice(rows[0], rows[0] + len(rows))
    return torch.tensor(rows)


def _prefill_chunk(
    layout: Layout, sequence: _Sequence, window: int | None, page_size: int, dtype: torch.dtype
) -> PrefillChunk:
    positions = torch.arange(sequence.first, sequence.context)
    table = layout.page_tables[sequence.index]
    slots = table[positions // page_size] * page_size + positions % page_size

    seer = positions[-len(sequence.rows) :, None]
    hidden = positions > seer
    if window is not None:
        hidden |= positions <= seer - window
    is_plain = len(positions) == len(seer) and (window is None or window >= len(seer))
    mask = torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, -torch.inf)
    rows = slice(sequence.rows.start, sequence.rows.stop)
    return PrefillChunk(rows, slots, None if is_plain else mask)
