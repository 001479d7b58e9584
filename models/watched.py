"""A decoder's layers one by one, with a visit to every named point on the way.

The same modules and the same products as in `layers.py`, in the same order, so that rows
which nobody changes come out with the same bits. Sums that a product makes on the way
(`add_to`) are made there all the same; who wants to see the product alone has it computed
once more. Knows layers and a `Watch`, not who is behind it (`engine/watching.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimsg.kernels.contract import Layout, Pages, Rotation
from minimsg.models.contract import Attended, Watch
from minimsg.models.points import EMBED, FINAL, point

if TYPE_CHECKING:
    from minimsg.models.layers import Attention, Decoder, DecoderLayer, Linear, RMSNorm


def run_layers(
    decoder: Decoder,
    x: Tensor,
    rotation: Rotation,
    cache: Sequence[Pages],
    layout: Layout,
    watch: Watch,
) -> None:
    """Adds every layer to `x` `(T, hidden)` in place."""
    watch.visit(EMBED, x)
    layers = cast("Iterable[DecoderLayer]", decoder.layers)
    for index, (layer, pages) in enumerate(zip(layers, cache, strict=True)):
        run_layer(layer, index, x, rotation, pages, layout, watch)
    see_normalized(FINAL, decoder.norm, x, watch)


def run_layer(
    layer: DecoderLayer,
    index: int,
    x: Tensor,
    rotation: Rotation,
    pages: Pages,
    layout: Layout,
    watch: Watch,
) -> None:
    """Adds to `x` `(T, hidden)` in place."""
    watch.visit(point(index, "hook_resid_pre"), x)
    see_normalized(point(index, "ln1.hook_normalized"), layer.attention_norm, x, watch)
    heads = layer.attention.input(x, layer.attention_norm).view(
        len(x), -1, layer.attention.head_dim
    )
    attended = _attend(layer.attention, index, heads, rotation, pages, layout, watch)
    watch.visit(point(index, "attn.hook_z"), attended)
    _add(layer.attention.output, attended.view(len(x), -1), x, point(index, "hook_attn_out"), watch)

    watch.visit(point(index, "hook_resid_mid"), x)
    see_normalized(point(index, "ln2.hook_normalized"), layer.mlp_norm, x, watch)
    gated = layer.mlp.gate_up(x, layer.mlp_norm)
    watch.visit(point(index, "mlp.hook_post"), gated)
    _add(layer.mlp.down, gated, x, point(index, "hook_mlp_out"), watch)
    watch.visit(point(index, "hook_resid_post"), x)


def see_normalized(name: str, norm: RMSNorm, x: Tensor, watch: Watch) -> None:
    """Visit what a norm makes of `x` `(T, hidden)` before its weight."""
    if watch.wants(name):
        watch.visit(name, F.rms_norm(x, norm.weight.shape, eps=norm.epsilon))


def _attend(
    attention: Attention,
    index: int,
    heads: Tensor,
    rotation: Rotation,
    pages: Pages,
    layout: Layout,
    watch: Watch,
) -> Tensor:
    """What attention gives for `heads` `(T, Hq + 2 Hkv, D)`: `(T, Hq, D)`.

    A backend's operator rotates and attends in one. Where its queries or keys are changed
    in between, the attention is computed once more, of heads that are rotated already.
    """
    value = heads[:, -attention.num_kv_heads :]
    _visit_parts(attention, index, heads, ("attn.hook_q", "attn.hook_k", "attn.hook_v"), watch)
    rotated_points = ("attn.hook_rot_q", "attn.hook_rot_k")
    if attention.operator is None:
        heads, value = attention.rotated(heads, rotation)
        _visit_parts(attention, index, heads, rotated_points, watch)
        output = attention.attend_rotated(heads, value, pages, layout)
    else:
        output = attention.attend(heads, rotation, pages, layout)  # rotates in place
        heads = heads[:, : -attention.num_kv_heads]
        if _visit_parts(attention, index, heads, rotated_points, watch):
            output = attention.attend_rotated(heads, value, pages, layout)
    query = heads[:, : attention.num_heads]
    rotated = partial(attention.rotated, rotation=rotation)
    watch.attended(
        Attended(index, query, output, pages, layout, attention.scale, attention.window, rotated)
    )
    return output


def _visit_parts(
    attention: Attention, index: int, heads: Tensor, names: tuple[str, ...], watch: Watch
) -> bool:
    """Visit queries, keys, values, as far as there are names; whether any were changed."""
    sizes = [attention.num_heads, attention.num_kv_heads, attention.num_kv_heads][: len(names)]
    changed = [
        watch.visit(point(index, name), part)
        for name, part in zip(names, torch.split(heads, sizes, dim=1), strict=True)
    ]
    return any(changed)


def _add(linear: Linear, values: Tensor, x: Tensor, name: str, watch: Watch) -> None:
    """Add `linear(values)` to `x` in place, with a visit to what is added."""
    if not watch.wants(name):
        linear(values, add_to=x)
        return
    before, product = x.clone(), linear(values)
    linear(values, add_to=x)
    for rows in watch.visit(name, product):
        x[rows] = before[rows] + product[rows]
