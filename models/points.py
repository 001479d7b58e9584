"""The named points of a decoder: where its activations can be read, and most of them changed.

The names are TransformerLens's, so that what is known of one can be looked for in the other;
values are of rows (n of a request's tokens), without a batch axis. A point is what the model
computes with, not a second computation, unless it says so:

| point | values | how it is had |
| --- | --- | --- |
| `hook_embed` | `(n, hidden)` | the embeddings, rows of pictures in their places |
| `blocks.L.hook_resid_pre` | `(n, hidden)` | the residual stream as the layer finds it |
| `blocks.L.ln1.hook_normalized` | `(n, hidden)` | computed beside, before the norm's weight; read only |
| `blocks.L.attn.hook_q`, `hook_k`, `hook_v` | `(n, heads, D)` | the projection's output |
| `blocks.L.attn.hook_rot_q`, `hook_rot_k` | `(n, heads, D)` | normalized where the family does that, and rotated |
| `blocks.L.attn.hook_pattern` | `(n, Hq, keys)` | computed beside, from the pages; read only |
| `blocks.L.attn.hook_z` | `(n, Hq, D)` | what attention gives |
| `blocks.L.hook_attn_out` | `(n, hidden)` | what attention adds: its product once more, without the sum |
| `blocks.L.hook_resid_mid` | `(n, hidden)` | the residual stream between attention and MLP |
| `blocks.L.ln2.hook_normalized` | `(n, hidden)` | as `ln1` |
| `blocks.L.mlp.hook_post` | `(n, width)` | `silu(gate) * up` |
| `blocks.L.hook_mlp_out` | `(n, hidden)` | what the MLP adds, as `hook_attn_out` |
| `blocks.L.hook_resid_post` | `(n, hidden)` | the residual stream behind the layer |
| `ln_final.hook_normalized` | `(n, hidden)` | as `ln1` |

Keys and values have `Hkv` heads. Qwen3-VL adds a picture's levels behind the first layers:
between `hook_resid_post` and the next `hook_resid_pre`. Knows names only, no tensor; who
visits the points in a step is in `watched.py`, who looks there in `engine/watching.py`.
"""  # noqa: E501 a row of a table

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

from minimsg.errors import InvalidRequest

EMBED: Final = "hook_embed"
FINAL: Final = "ln_final.hook_normalized"
OF_A_LAYER: Final = (
    "hook_resid_pre", "ln1.hook_normalized",
    "attn.hook_q", "attn.hook_k", "attn.hook_v", "attn.hook_rot_q", "attn.hook_rot_k",
    "attn.hook_pattern", "attn.hook_z", "hook_attn_out",
    "hook_resid_mid", "ln2.hook_normalized", "mlp.hook_post", "hook_mlp_out", "hook_resid_post",
)  # fmt: skip
COMPUTED_BESIDE: Final = ("hook_normalized", "hook_pattern")


def point(layer: int, name: str) -> str:
    """The point `name` of a layer, whole."""
    return f"blocks.{layer}.{name}"


def names(num_layers: int) -> tuple[str, ...]:
    """All points of a decoder, in the order in which a step comes to them."""
    layers = (point(layer, name) for layer in range(num_layers) for name in OF_A_LAYER)
    return (EMBED, *layers, FINAL)


def layer_of(name: str) -> int | None:
    """The layer of a point, if it is in one."""
    parts = name.split(".")
    return int(parts[1]) if parts[0] == "blocks" else None


def is_read_only(name: str) -> bool:
    """Whether the model does not compute with what is seen there."""
    return name.endswith(COMPUTED_BESIDE)


def matching(patterns: Iterable[str], there: tuple[str, ...]) -> dict[str, str]:
    """Each point that one of `patterns` means, which may have a `*`, and the last that does.

    Raises InvalidRequest for one that means none of the points that are `there`.
    """
    found: dict[str, str] = {}
    for pattern in patterns:
        meant = [name for name in there if fnmatchcase(name, pattern)]
        if not meant:
            raise InvalidRequest("", f"the model has no point {pattern!r}; {_hint(there)}")
        found |= dict.fromkeys(meant, pattern)
    return found


def _hint(there: tuple[str, ...]) -> str:
    if not there:
        return "it has none"
    return f"there are {EMBED}, {', '.join(there[1 : 1 + len(OF_A_LAYER)])} ... {FINAL}"
