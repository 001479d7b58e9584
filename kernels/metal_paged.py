"""Paged attention on Apple GPUs (MPS): `paged.metal`, compiled and dispatched through torch.

Emulated in tests, not yet run on hardware: `tests/kernels/metal` compiles the same shader
for the CPU and runs this module against it, arguments and all. Whoever has a Mac: `pytest
tests/kernels/test_metal_hardware.py`, then `minimsg serve --device mps --kernel metal_paged`.

Knows how a step is cut into threadgroups and what `torch.mps.compile_shader` takes; the
arithmetic is the shader's. Whole numbers travel in int32 tensors, since torch hands a Python
int over as 64 bits. A long context is not split over threadgroups: one answers one head.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages

ELEMENTS = {torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat"}
LANES = 32  # of a simdgroup
SIMDGROUPS = 8  # of a threadgroup
TILE_ROWS = 32  # query rows of a prefill threadgroup
MAX_HEAD_DIM = 256  # 32 float32 keys of it fill the 32 KiB that a threadgroup has
NO_WINDOW = 2**31 - 1  # more tokens than a context has


class Kernel(Protocol):
    """One function of a compiled shader, as torch gives it out."""

    def __call__(
        self, *arguments: Tensor | float, threads: list[int], group_size: list[int]
    ) -> None:
        """Run it once for each of `threads` (all of the grid), in groups of `group_size`."""


CompileShader = Callable[[str], object]  # source -> what has each kernel as an attribute


@dataclass(frozen=True)
class _Plan:
    """What all layers of a step need of its layout, on the device."""

    layout: Layout
    page_tables: Tensor  # (B, P) int32
    slots: Tensor  # (T,) int32
    tiles: dict[str, Tensor]  # by the kernel that answers them: (N, 4) int32, `Tile` of the shader


class Backend:
    """Attention by compute shader. Holds the compiled ones and the plan of the last step."""

    name = "metal_paged"
    is_batch_invariant = False  # a token alone is decoded, in a chunk prefilled: other sums

    def __init__(self, compile_shader: CompileShader | None = None) -> None:
        self._compile_shader = compile_shader
        self._libraries: dict[tuple[torch.dtype, int, int], object] = {}
        self._sizes: dict[tuple[torch.device, int, int, int | None], Tensor] = {}
        self._plan: _Plan | None = None

    def supports(self, *, device: torch.device, dtype: torch.dtype, head_dim: int) -> str | None:
        if device.type != "mps":
            return f"it runs on Apple GPUs (mps) only, not on {device.type}"
        if not torch.backends.mps.is_available():
            return "torch sees no Apple GPU"
        if not hasattr(torch.mps, "compile_shader"):
            return f"torch {torch.__version__} has no torch.mps.compile_shader"
        if dtype not in ELEMENTS:
            return f"it knows float32, bfloat16 and float16, not {dtype}"
        if head_dim > MAX_HEAD_DIM:
            return f"heads of at most {MAX_HEAD_DIM} dimensions fit its memory, not of {head_dim}"
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
        num_tokens, num_heads, head_dim = query.shape
        if self._plan is None or self._plan.layout is not layout:
            self._plan = _plan(layout)
        plan, library = self._plan, self._library(query.dtype, head_dim, pages.key.shape[1])

        width = key[0].numel()
        _kernel(library, "store")(
            key.contiguous(), value.contiguous(), pages.key, pages.value, plan.slots,
            threads=[width, num_tokens], group_size=[min(width, SIMDGROUPS * LANES), 1],
        )  # fmt: skip
        query = query.contiguous()
        output = torch.empty_like(query)
        sizes = self._sizes_of(query.device, num_heads, key.shape[1], window)
        for name, tiles in plan.tiles.items():
            _kernel(library, name)(
                query, pages.key, pages.value, output, plan.page_tables, tiles, sizes, scale,
                threads=[len(tiles) * SIMDGROUPS * LANES, num_heads],
                group_size=[SIMDGROUPS * LANES, 1],
            )  # fmt: skip
        return output

    def _library(self, dtype: torch.dtype, head_dim: int, page_size: int) -> object:
        """The shader for these, compiled when first asked for."""
        key = (dtype, head_dim, page_size)
        if key not in self._libraries:
            compile_shader: CompileShader = self._compile_shader or torch.mps.compile_shader
            self._libraries[key] = compile_shader(source(dtype, head_dim, page_size))
        return self._libraries[key]

    def _sizes_of(
        self, device: torch.device, heads: int, kv_heads: int, window: int | None
    ) -> Tensor:
        """`Sizes` of the shader, kept: a model has one or two of them."""
        key = (device, heads, kv_heads, window)
        if key not in self._sizes:
            numbers = [heads, kv_heads, NO_WINDOW if window is None else window]
            self._sizes[key] = torch.tensor(numbers, dtype=torch.int32, device=device)
        return self._sizes[key]


def source(dtype: torch.dtype, head_dim: int, page_size: int) -> str:
    """`paged.metal` below the numbers and the type that it leaves open."""
    defined = {
        "ELEMENT": ELEMENTS[dtype],
        "HEAD_DIM": head_dim,
        "PAGE_SIZE": page_size,
        "SIMDGROUPS": SIMDGROUPS,
        "TILE_ROWS": TILE_ROWS,
    }
    lines = [f"#define {name} {meaning}" for name, meaning in defined.items()]
    return "\n".join([*lines, Path(__file__).with_name("paged.metal").read_text("ascii")])


def _kernel(library: object, name: str) -> Kernel:
    kernel: Kernel = getattr(library, name)
    return kernel


def _plan(layout: Layout) -> _Plan:
    """Cut a step into tiles: one new token is decoded, several are prefilled 32 at a time."""
    table_width = layout.page_tables.shape[1]
    tiles: dict[str, list[tuple[int, int, int, int]]] = {"decode": [], "prefill": []}
    for sequence, context in enumerate(layout.context_lens):
        start, stop = layout.query_starts[sequence : sequence + 2]
        kernel = "decode" if stop - start == 1 else "prefill"
        for row in range(start, stop, TILE_ROWS):
            count = min(TILE_ROWS, stop - row)
            tiles[kernel].append((row, count, sequence * table_width, context - stop + row))
    device = layout.slots.device
    return _Plan(
        layout,
        layout.page_tables.to(torch.int32).contiguous(),
        layout.slots.to(torch.int32),
        {
            name: torch.tensor(rows, dtype=torch.int32, device=device)
            for name, rows in tiles.items()
            if rows
        },
    )
