"""The tensors of a .gguf file under Hugging Face's names and in its row order.

One thing is more than renaming: llama's query and key rows, which llama.cpp reorders
for its interleaved rotary embedding. The file format is in `gguf.py`, the config in
`gguf_config.py`, the names and shapes asked for in `parameters.py`.

Source: `convert_hf_to_gguf.py` and `gguf-py/gguf/constants.py` of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from minimsg.models.config import ModelConfig
from minimsg.models.gguf import GGUF
from minimsg.models.parameters import Shape, parameter_shapes, refuse_difference

Array: TypeAlias = NDArray[np.float32]

STEMS: Final = {  # Hugging Face's module in a layer -> llama.cpp's
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OUTER: Final = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
ROPE_DIVISORS: Final = "rope_freqs.weight"  # no weight: part of the config


def tensors_from_gguf(
    file: GGUF, config: Mapping[str, object]
) -> tuple[dict[str, Shape], Iterator[tuple[str, Array]]]:
    """The shape of each weight by its Hugging Face name; and, lazily, its values in that order.

    Raises:
        CheckpointError: a weight is missing, too many, or of another shape than the
            config gives it.
    """
    shapes = parameter_shapes(ModelConfig.from_dict(config))
    sources = {_source(name): shape for name, shape in shapes.items()}
    seen = {info.name: info.shape for info in file.tensors.values() if info.name != ROPE_DIVISORS}
    refuse_difference(file.path, seen, sources)

    def values() -> Iterator[tuple[str, Array]]:
        for name in shapes:
            array = file.dequantize(_source(name))
            yield name, _undo_row_order(name, array, config)

    return shapes, values()


def _source(name: str) -> str:
    """`model.layers.3.self_attn.q_proj.weight` -> `blk.3.attn_q.weight`."""
    module, kind = name.rsplit(".", 1)
    if module in OUTER:
        return f"{OUTER[module]}.{kind}"
    _, _, layer, stem = module.split(".", 3)
    return f"blk.{layer}.{STEMS[stem]}.{kind}"


def _undo_row_order(name: str, array: Array, config: Mapping[str, object]) -> Array:
    """llama's q and k rows as Hugging Face orders them; everything else as it is.

    llama.cpp pairs rows (0, 1), (2, 3) ... of a head for its rotation, Hugging Face row i
    with row i + D/2.
    """
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    key = heads.get(name.split(".")[-2])
    if config["model_type"] != "llama" or key is None:
        return array
    num_heads = config[key]
    assert isinstance(num_heads, int)
    half = array.shape[0] // num_heads // 2
    pairs = array.reshape(num_heads, half, 2, -1)  # (H, D/2, 2, in)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(array.shape)
