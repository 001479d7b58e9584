"""Paged attention on CUDA, in Triton: what is launched, with which blocks, over what.

A step's layout is turned into a plan once and reused by all layers. A sequence with one
new token is split over its pages, as many ways as fill the device (arXiv 2309.06180 section
4.3 for the pages, arXiv 2311.01282 for the split), and merged; a sequence with more is cut
into tiles of its new tokens. The heads of a group are query rows, so that keys are read once.

Runs compiled on CUDA, or in Triton's interpreter on the CPU, which shows that the numbers are
right and nothing else. It has not run on CUDA hardware yet: the tests interpret it in float32
and float16 and compile it for four generations of GPU (`tests/kernels/test_triton.py`).
The kernels are in `triton_kernels.py`; what attention *is* stands in `reference.py`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages
from minimsg.kernels.triton_plan import (
    Blocks,
    Plan,
    PlannedLayout,
    blocks_for,
    num_splits,
    plan_for,
    power_of_two,
)

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MIN_CAPABILITY = (8, 0)  # older ones have no bfloat16, nor asynchronous copies
MAX_HEAD_DIM = 256  # what two blocks of keys and values leave room for


class Backend:
    """Attention with Triton. Keeps the plan of the latest layout: one instance an engine."""

    name = "triton_paged"
    is_batch_invariant = False  # the split follows from the batch

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._plans: dict[int, Plan] = {}  # of `_layout`, by the tokens of a tile

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        if device.type != "cuda" and not _is_interpreted():
            return f"it runs on CUDA only, not on {device.type}"
        if find_spec("triton") is None:
            return "the package triton is not installed"
        if dtype not in DTYPES:
            return f"it knows float32, bfloat16 and float16, not {dtype}"
        if head_dim > MAX_HEAD_DIM:
            return f"it knows heads of up to {MAX_HEAD_DIM} numbers, not {head_dim}"
        return _why_not_interpreted(dtype) if _is_interpreted() else _why_not_on(device)

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
        blocks = blocks_for(query.shape[1] // key.shape[1], key.shape[2], query.dtype)
        plan = layout.plan if isinstance(layout, PlannedLayout) else self._plan(layout, blocks)
        cached_key, cached_value = (
            each.view(-1, *key.shape[1:]) for each in (pages.key, pages.value)
        )
        step = _Step(_rows(query), cached_key, cached_value, layout.page_tables, plan, blocks)
        with torch.cuda.device(query.get_device()):  # -1, the CPU's, changes nothing
            _store(_rows(key), _rows(value), cached_key, cached_value, layout.slots)
            return step.attend(scale, window or 0, pages.key.shape[1])

    def _plan(self, layout: Layout, blocks: Blocks) -> Plan:
        """The plan of `layout`, made for the first layer that asks."""
        if layout is not self._layout:
            self._layout, self._plans = layout, {}
        if blocks.tokens not in self._plans:
            self._plans[blocks.tokens] = plan_for(layout, blocks.tokens)
        return self._plans[blocks.tokens]


@dataclass(frozen=True)
class _Step:
    """The tensors of one call. Each launch names a kernel's arguments in their order."""

    query: Tensor  # (T, Hq, D)
    cached_key: Tensor  # (slots, Hkv, D)
    cached_value: Tensor
    tables: Tensor  # (B, P) int64
    plan: Plan
    blocks: Blocks

    def attend(self, scale: float, window: int, page_size: int) -> Tensor:
        """`(T, Hq, D)`; rows of no sequence are left open."""
        output = torch.empty(self.query.shape, dtype=self.query.dtype, device=self.query.device)
        scale *= math.log2(math.e)
        if len(self.plan.decoding):
            self._decode(output, scale, window, page_size)
        if len(self.plan.tiles):
            self._prefill(output, scale, window, page_size)
        return output

    def _decode(self, output: Tensor, scale: float, window: int, page_size: int) -> None:
        num_heads, head_dim = output.shape[1:]
        num_kv_heads, num = self.cached_key.shape[1], len(self.plan.decoding)
        longest = min(self.plan.longest, window or self.plan.longest)
        splits = num_splits(num * num_kv_heads, longest, _num_processors(output.device))
        shape = (num, num_heads, splits)
        partial = output.new_empty((*shape, head_dim), dtype=torch.float32)
        log_total = output.new_empty(shape, dtype=torch.float32)
        plan, blocks, kernels = self.plan, self.blocks, _kernels()
        kernels.decode_split[(num_kv_heads, num, splits)](
            self.query, self.cached_key, self.cached_value, self.tables,
            plan.starts, plan.lengths, plan.decoding, partial, log_total, scale, *self._strides,
            num_heads // num_kv_heads, head_dim, page_size, window,
            blocks.decode_rows, blocks.head_dim, blocks.keys,
            num_warps=4, num_stages=2,
        )  # fmt: skip
        kernels.decode_merge[(num_heads, num)](
            partial, log_total, plan.starts, plan.decoding, output,
            head_dim, blocks.head_dim, splits,
            num_warps=4,
        )  # fmt: skip

    def _prefill(self, output: Tensor, scale: float, window: int, page_size: int) -> None:
        num_heads, head_dim = output.shape[1:]
        num_kv_heads = self.cached_key.shape[1]
        plan, blocks = self.plan, self.blocks
        _kernels().prefill[(num_kv_heads, len(plan.tiles))](
            self.query, self.cached_key, self.cached_value, self.tables,
            plan.starts, plan.lengths, plan.tiles, output, scale, *self._strides,
            num_heads // num_kv_heads, head_dim, page_size, window,
            blocks.group, blocks.head_dim, blocks.prefill_rows, blocks.keys,
            num_warps=blocks.num_warps, num_stages=2,
        )  # fmt: skip

    @property
    def _strides(self) -> tuple[int, int, int]:
        """Numbers from one token to the next, one slot to the next, one table to the next."""
        return self.query.stride(0), self.cached_key.stride(0), self.tables.stride(0)


def _store(
    key: Tensor, value: Tensor, cached_key: Tensor, cached_value: Tensor, slots: Tensor
) -> None:
    width = key.shape[1] * key.shape[2]
    _kernels().store[(len(key),)](
        key, value, cached_key, cached_value, slots,
        key.stride(0), value.stride(0), cached_key.stride(0),
        width, power_of_two(width),
        num_warps=4,
    )  # fmt: skip


def _rows(heads: Tensor) -> Tensor:
    """`(T, heads, D)` with the numbers of each token side by side; a copy only if they are not."""
    return heads if heads[0].is_contiguous() else heads.contiguous()


def _is_interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"


def _why_not_interpreted(dtype: torch.dtype) -> str | None:
    """triton 3.8 multiplies the bits of bfloat16 there as if they were integers."""
    if dtype == torch.bfloat16:
        return "Triton's interpreter cannot multiply bfloat16"
    return None


def _why_not_on(device: torch.device) -> str | None:
    if not torch.cuda.is_available():
        return "there is no CUDA device"
    capability = torch.cuda.get_device_capability(device)
    if capability < MIN_CAPABILITY:
        return f"compute capability {MIN_CAPABILITY} is needed, the device has {capability}"
    return None


def _num_processors(device: torch.device) -> int:
    """Multiprocessors; the interpreter, which has none, is to split too."""
    if device.type != "cuda":
        return 8
    return torch.cuda.get_device_properties(device).multi_processor_count


def _kernels() -> ModuleType:
    from minimsg.kernels import triton_kernels  # needs triton

    return triton_kernels
