"""The CPU's fast path: `cpu_native.c`, compiled for this machine and called through ctypes.

Beside attention it offers every operator of `contract.py`: all layers of a decoder are one
call, or five calls each where something is to happen in between. Activations are float32
whatever the weights are; weights lie in memory in the order in which the C code reads them
(`pack`), and int8 ones carry a scale for each 32 of a row. What those are multiplied with is
rounded to int8 in the same groups, inside the product.
No compiler, no such path: `supports` says so and `cpu.py` is taken.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, Array, Structure, addressof, byref, c_float, c_int64, c_void_p
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.errors import KernelUnavailable
from minimsg.kernels.compile import FLAGS, load_library
from minimsg.kernels.contract import (
    Formats,
    HeadNorm,
    LayerParts,
    Layout,
    Norm,
    Pages,
    Rotation,
)

SOURCE: Final = Path(__file__).with_name("cpu_native.c")
TILE: Final = 16  # outputs that are computed together
GROUP: Final = 32  # weights of a row that share a scale
FORMATS: Final = (torch.float32, torch.bfloat16, torch.int8)  # in the order of the C file's enum
HEAD_MULTIPLE: Final = 16  # the widest vector, in float32


class _Matrix(Structure):
    _fields_ = (
        ("tiles", c_void_p), ("bias", c_void_p), ("inputs", c_int64), ("outputs", c_int64),
        ("format", c_int64), ("is_gated", c_int64),
    )  # fmt: skip


class _Layout(Structure):
    _fields_ = (
        ("sequences", c_int64), ("table_width", c_int64), ("page_size", c_int64),
        ("query_starts", c_void_p), ("context_lens", c_void_p), ("page_tables", c_void_p),
        ("slots", c_void_p), ("items", c_void_p), ("num_items", c_int64), ("num_partials", c_int64),
    )  # fmt: skip


class _Heads(Structure):
    _fields_ = (
        ("num_heads", c_int64), ("num_kv_heads", c_int64), ("head_dim", c_int64),
        ("window", c_int64), ("is_bfloat16", c_int64), ("scale", c_float), ("epsilon", c_float),
        ("query_norm", c_void_p), ("key_norm", c_void_p), ("cos", c_void_p), ("sin", c_void_p),
    )  # fmt: skip


class _Layer(Structure):
    _fields_ = (
        ("input", c_void_p), ("output", c_void_p), ("gate_up", c_void_p), ("down", c_void_p),
        ("attention_norm", c_void_p), ("mlp_norm", c_void_p), ("attention_epsilon", c_float),
        ("mlp_epsilon", c_float), ("heads", _Heads), ("keys", c_void_p), ("values", c_void_p),
    )  # fmt: skip


class _Room(Structure):
    _fields_ = (
        ("heads", c_void_p), ("attended", c_void_p), ("gated", c_void_p), ("partials", c_void_p),
        ("scratch", c_void_p),
    )  # fmt: skip


ITEM_FIELDS: Final = 9  # int64 each
LINE: Final = 64  # bytes: no two threads write into one


@dataclass(frozen=True)
class Matrix:
    """A weight in the C code's order, and the tensors that keep its memory."""

    struct: _Matrix
    address: int  # of it
    width: int  # inputs, before padding
    outputs: int  # of `linear`
    row_bytes: int  # scratch for each row of x
    tensors: tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Joined:
    """The layers of a decoder in the C code's order, and who keeps their memory."""

    structs: Array[_Layer]
    parts: list[LayerParts]
    row_sizes: tuple[int, int, int, int]  # of `_Room` but for partials: bytes for each row of x


@dataclass(frozen=True)
class Plan:
    """A step's layout as the C code reads it, and the tensors that keep its memory."""

    struct: _Layout
    num_partials: int
    tensors: tuple[Tensor, ...]


@cache
def library(flags: tuple[str, ...] = FLAGS) -> ctypes.CDLL:
    """The compiled file with its functions declared. Raises KernelUnavailable."""
    lib = load_library(SOURCE, flags)
    lib.linear_bytes.argtypes, lib.linear_bytes.restype = [POINTER(_Matrix)], c_int64
    lib.linear.argtypes = [
        c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_float, c_int64, c_void_p, c_void_p,
        c_int64,
    ]  # fmt: skip
    lib.plan.argtypes = [POINTER(_Layout), c_int64, c_int64, c_int64, c_void_p]
    lib.plan.restype = c_int64
    lib.attention.argtypes = [
        POINTER(_Heads), POINTER(_Layout), c_void_p, c_void_p, c_void_p, c_int64, c_int64,
        c_void_p, c_void_p, c_void_p, c_void_p, c_int64,
    ]  # fmt: skip
    lib.layers.argtypes = [
        c_void_p, c_int64, POINTER(_Layout), c_void_p, c_void_p, c_void_p, c_int64, c_int64,
        POINTER(_Room), c_int64,
    ]  # fmt: skip
    lib.linear.restype = lib.attention.restype = lib.layers.restype = None
    return lib


class Backend:
    """Attention, linear layers and heads in C. Holds scratch: one an engine, one thread a time."""

    name = "cpu_native"
    is_batch_invariant = True
    order = "cpu_native: tiles of 16, groups of 32, gate and up in turn"

    def __init__(self, flags: tuple[str, ...] = FLAGS) -> None:
        """`flags` of the compiler: the tests take the paths of other machines with them."""
        self._flags = flags
        self._scratch = torch.empty(0, dtype=torch.uint8)
        self._scratch_bytes = self._scratch_address = 0
        self._layout: Layout | None = None
        self._plans: dict[tuple[int, int, int], Plan] = {}  # of `_layout`

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        if device.type != "cpu":
            return f"it runs on the CPU only, not on {device.type}"
        if dtype not in FORMATS:
            return f"it knows float32, bfloat16 and int8, not {dtype}"
        if head_dim % HEAD_MULTIPLE:
            return f"a head is {head_dim} numbers; it needs a multiple of {HEAD_MULTIPLE}"
        try:
            library(self._flags)
        except KernelUnavailable as error:
            return str(error)
        return None

    def formats(self, dtype: torch.dtype) -> Formats:
        cached = torch.float32 if dtype is torch.float32 else torch.bfloat16
        return Formats(weights=dtype, activations=torch.float32, cache=cached)

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
        heads = torch.cat((query, key, value), dim=1).float()
        call = _call(pages, query.shape[1], scale, window)
        return self._attend(call, heads, pages, layout).to(query.dtype)

    def attend_heads(
        self,
        heads: Tensor,
        head_norm: HeadNorm | None,
        rotation: Rotation,
        pages: Pages,
        layout: Layout,
        *,
        num_heads: int,
        scale: float,
        window: int | None,
    ) -> Tensor:
        call = _call(pages, num_heads, scale, window, head_norm)
        call.cos, call.sin = rotation.cos.data_ptr(), rotation.sin.data_ptr()
        return self._attend(call, heads, pages, layout)

    def _attend(self, call: _Heads, heads: Tensor, pages: Pages, layout: Layout) -> Tensor:
        """Heads `(T, Hq + 2 Hkv, D)` float32, contiguous. Lean: a step does this for each layer."""
        assert heads.is_contiguous(), "the C code reads rows one after the other"
        assert heads.dtype is torch.float32
        num_tokens, num_heads, head_dim = heads.shape[0], call.num_heads, call.head_dim
        plan = self._plan(layout, pages.key.shape[1], num_heads, call.num_kv_heads)
        output = torch.empty(num_tokens, num_heads, head_dim)
        query = heads.data_ptr()
        key = query + 4 * num_heads * head_dim
        value = key + 4 * call.num_kv_heads * head_dim
        library(self._flags).attention(
            byref(call), byref(plan.struct), query, key, value, heads.shape[1] * head_dim,
            num_tokens, pages.key.data_ptr(), pages.value.data_ptr(), output.data_ptr(),
            self._room(4 * plan.num_partials * (head_dim + 2)), torch.get_num_threads(),
        )  # fmt: skip
        return output

    def _plan(self, layout: Layout, page_size: int, num_heads: int, num_kv_heads: int) -> Plan:
        """The plan of `layout`, made for the first layer that asks for these heads."""
        if layout is not self._layout:
            self._layout, self._plans = layout, {}
        key = (page_size, num_heads, num_kv_heads)
        if key not in self._plans:
            plan = library(self._flags).plan
            self._plans[key] = _make_plan(plan, layout, page_size, num_heads, num_kv_heads)
        return self._plans[key]

    def pack(self, weight: Tensor, dtype: torch.dtype, *, is_gated: bool) -> Tensor:
        return pack(weight, dtype, is_gated=is_gated)

    def packed_shape(self, shape: torch.Size, *, is_gated: bool) -> torch.Size:
        halves = 1 + is_gated
        tiles, groups = halves * -(-shape[0] // halves // TILE), -(-shape[1] // GROUP)
        return torch.Size((tiles, groups, 2 * TILE + TILE * GROUP))

    def matrix(
        self, packed: Tensor, bias: Tensor | None, shape: torch.Size, *, is_gated: bool
    ) -> Matrix:
        outputs, width = shape[0] // 2 if is_gated else shape[0], shape[1]
        bias = None if bias is None else bias.float().contiguous()
        struct = _Matrix(
            tiles=packed.data_ptr(),
            bias=None if bias is None else bias.data_ptr(),
            inputs=_padded(width, GROUP),
            outputs=outputs,
            format=FORMATS.index(torch.int8 if packed.dtype is torch.uint8 else packed.dtype),
            is_gated=is_gated,
        )
        row_bytes = library(self._flags).linear_bytes(byref(struct))
        address = addressof(struct)
        return Matrix(struct, address, width, outputs, row_bytes, (packed, bias))

    def linear(self, x: Tensor, matrix: Matrix, norm: Norm | None, add_to: Tensor | None) -> Tensor:
        assert x.is_contiguous(), "the C code reads rows one after the other"
        assert x.dtype is torch.float32
        num_rows = x.shape[0]
        output = torch.empty(num_rows, matrix.outputs) if add_to is None else add_to
        weight, epsilon = (None, 0.0) if norm is None else (norm.weight.data_ptr(), norm.epsilon)
        library(self._flags).linear(
            matrix.address, x.data_ptr(), matrix.width, num_rows, weight, epsilon,
            add_to is not None, output.data_ptr(), self._room(num_rows * matrix.row_bytes),
            torch.get_num_threads(),
        )  # fmt: skip
        return output

    def join(self, layers: list[LayerParts]) -> Joined:
        products = [(each.input, each.output, each.gate_up, each.down) for each in layers]
        row_sizes = (
            max(4 * input.outputs for input, _, _, _ in products),
            max(4 * output.width for _, output, _, _ in products),
            max(4 * gate_up.outputs for _, _, gate_up, _ in products),
            max(each.row_bytes for four in products for each in four),
        )
        structs = (_Layer * len(layers))(*map(_layer, layers))
        return Joined(structs, layers, row_sizes)

    def run_layers(self, x: Tensor, joined: Joined, rotation: Rotation, layout: Layout) -> None:
        for rows in (x, rotation.cos, rotation.sin):
            assert rows.is_contiguous(), "the C code reads rows one after the other"
            assert rows.dtype is torch.float32
        heads, pages = joined.structs[0].heads, joined.parts[0].pages
        plan = self._plan(layout, pages.key.shape[1], heads.num_heads, heads.num_kv_heads)
        sizes = [len(x) * each for each in joined.row_sizes]
        sizes.insert(3, 4 * plan.num_partials * (heads.head_dim + 2))
        starts = list(accumulate((_padded(size, LINE) for size in sizes), initial=0))
        room = self._room(starts.pop())
        library(self._flags).layers(
            joined.structs, len(joined.parts), byref(plan.struct), rotation.cos.data_ptr(),
            rotation.sin.data_ptr(), x.data_ptr(), x.shape[1], len(x),
            byref(_Room(*(room + start for start in starts))), torch.get_num_threads(),
        )  # fmt: skip

    def _room(self, num_bytes: int) -> int:
        """The address of scratch, overwritten by the next call."""
        if self._scratch_bytes < num_bytes:
            self._scratch = torch.empty(num_bytes, dtype=torch.uint8)
            self._scratch_bytes, self._scratch_address = num_bytes, self._scratch.data_ptr()
        return self._scratch_address


def pack(weight: Tensor, dtype: torch.dtype, *, is_gated: bool) -> Tensor:
    """`weight` `(N, K)` as tiles of 16 outputs, each one stream; gate and up tiles alternate.

    Padded with zeros to whole tiles and whole groups. In a tile, `(K, 16)` float32, or
    `(K / 2, 16, 2)` bfloat16, or for each group of 32 inputs `(16,)` scales in bfloat16 and
    `(8, 16, 4)` int8, as bytes.
    """
    halves = weight.reshape(1 + is_gated, -1, weight.shape[1])
    _, outputs, inputs = halves.shape
    padding = (0, _padded(inputs, GROUP) - inputs, 0, _padded(outputs, TILE) - outputs)
    padded = F.pad(halves, padding) if any(padding) else halves
    tiles = padded.view(1 + is_gated, -1, TILE, padded.shape[-1]).transpose(0, 1).flatten(0, 1)
    if dtype is torch.float32:  # of (tiles, 16, K)
        return tiles.float().transpose(1, 2).contiguous()
    if dtype is torch.bfloat16:
        pairs = tiles.to(dtype).view(torch.int32)  # (tiles, 16, K / 2): two numbers each
        return pairs.transpose(1, 2).contiguous().view(dtype)
    numbers, scales = quantize(tiles.float())
    fours = numbers.view(torch.int32).view(*scales.shape, GROUP // 4)  # (tiles, 16, groups, 8)
    bytes = fours.permute(0, 2, 3, 1).contiguous().view(torch.uint8).flatten(2)
    return torch.cat((scales.transpose(1, 2).contiguous().view(torch.uint8), bytes), dim=-1)


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """`(..., K)` float32 as int8 and, for each 32 of the last axis, a bfloat16 scale."""
    groups = weight.view(*weight.shape[:-1], -1, GROUP)
    scales = (groups.abs().amax(dim=-1) / 127).to(torch.bfloat16)
    factors = torch.where(scales > 0, 1 / scales.float(), 0.0)
    numbers = (groups * factors[..., None]).round_().clamp_(-127, 127)
    return numbers.to(torch.int8).view(weight.shape), scales


def _call(
    pages: Pages,
    num_heads: int,
    scale: float,
    window: int | None,
    head_norm: HeadNorm | None = None,
) -> _Heads:
    _, _, num_kv_heads, head_dim = pages.key.shape
    is_bfloat16 = pages.key.dtype is torch.bfloat16
    call = _Heads(num_heads, num_kv_heads, head_dim, window or 0, is_bfloat16, scale)
    if head_norm is not None:
        call.query_norm = head_norm.query_weight.data_ptr()
        call.key_norm = head_norm.key_weight.data_ptr()
        call.epsilon = head_norm.epsilon
    return call


def _layer(parts: LayerParts) -> _Layer:
    return _Layer(
        *(each.address for each in (parts.input, parts.output, parts.gate_up, parts.down)),
        parts.attention_norm.weight.data_ptr(),
        parts.mlp_norm.weight.data_ptr(),
        parts.attention_norm.epsilon,
        parts.mlp_norm.epsilon,
        _call(parts.pages, parts.num_heads, parts.scale, parts.window, parts.head_norm),
        parts.pages.key.data_ptr(),
        parts.pages.value.data_ptr(),
    )


def _make_plan(
    plan: Callable[..., int], layout: Layout, page_size: int, num_heads: int, num_kv_heads: int
) -> Plan:
    starts, contexts = torch.tensor(layout.query_starts), torch.tensor(layout.context_lens)
    tables, slots, threads = layout.page_tables.contiguous(), layout.slots, torch.get_num_threads()
    struct = _Layout(
        len(contexts), tables.shape[1], page_size, starts.data_ptr(), contexts.data_ptr(),
        tables.data_ptr(), slots.data_ptr(),
    )  # fmt: skip
    count = plan(byref(struct), num_heads, num_kv_heads, threads, None)
    items = torch.empty(count, ITEM_FIELDS, dtype=torch.int64)
    plan(byref(struct), num_heads, num_kv_heads, threads, items.data_ptr())
    struct.items = items.data_ptr()
    return Plan(struct, struct.num_partials, (starts, contexts, tables, slots, items))


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
