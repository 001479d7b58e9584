"""The names and shapes of every weight that a config asks for, without torch.

A checkpoint is complete if it holds exactly these. Read when a model is pulled or
converted, before anything is allocated; `weights.py` asks the model itself when it
loads. Knows the dense families; names are Hugging Face's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.models.config import ModelConfig
from minimsg.models.vision_parameters import tower_shapes

Shape: TypeAlias = tuple[int, ...]

EMBEDDING: Final = "model.embed_tokens.weight"
HEAD: Final = "lm_head.weight"
DENSE: Final = frozenset({"llama", "qwen2", "qwen2_5_vl", "qwen3", "qwen3_vl"})
HAS_INPUT_BIAS: Final = ("qwen2", "qwen2_5_vl")  # always, and never one of the output
HAS_HEAD_NORM: Final = ("qwen3", "qwen3_vl")


def parameter_shapes(config: ModelConfig) -> dict[str, Shape]:
    """The shape of each weight, by name, in the order of the forward pass.

    `lm_head.weight` is among them unless the config ties it to the embedding.

    Raises:
        UnsupportedModel: the family is not a dense one.
    """
    if config.model_type not in DENSE:
        raise UnsupportedModel(f"model_type {config.model_type!r}; dense: {', '.join(DENSE)}")
    hidden = config.hidden_size
    layer = _attention_shapes(config) | _mlp_shapes(config)
    shapes: dict[str, Shape] = {EMBEDDING: (config.vocab_size, hidden)}
    for i in range(config.num_layers):
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    shapes["model.norm.weight"] = (hidden,)
    if not config.tie_word_embeddings:
        shapes[HEAD] = (config.vocab_size, hidden)
    if config.vision is not None:
        shapes |= tower_shapes(config.vision, config.model_type, hidden)
    return shapes


def as_stored(expected: Mapping[str, Shape], seen: Collection[str]) -> dict[str, Shape]:
    """`expected`, with the one matrix of a tied model under the names it has in `seen`.

    Exporters store it as the embedding, as the head, or as both.
    """
    if HEAD in expected or HEAD not in seen or EMBEDDING not in expected:
        return dict(expected)
    kept = {name: s for name, s in expected.items() if name != EMBEDDING or name in seen}
    return kept | {HEAD: expected[EMBEDDING]}


def refuse_difference(
    file: object, seen: Mapping[str, Shape], expected: Mapping[str, Shape]
) -> None:
    """Raise CheckpointError unless the two hold the same names with the same shapes."""
    if missing := expected.keys() - seen.keys():
        raise CheckpointError(file, f"it lacks {_some(missing)}", f"{len(expected)} tensors")
    if unexpected := seen.keys() - expected.keys():
        raise CheckpointError(
            file, f"it also holds {_some(unexpected)}", "no tensor beyond those of the config"
        )
    for name, shape in expected.items():
        if seen[name] != shape:
            raise CheckpointError(file, f"{name} has shape {list(seen[name])}", f"{list(shape)}")


def _attention_shapes(config: ModelConfig) -> dict[str, Shape]:
    hidden, head_dim = config.hidden_size, config.head_dim
    query, key = config.num_heads * head_dim, config.num_kv_heads * head_dim
    has_input_bias = config.model_type in HAS_INPUT_BIAS
    has_bias = config.attention_bias and not has_input_bias
    shapes: dict[str, Shape] = {"input_layernorm.weight": (hidden,)}
    for name, size in (("q_proj", query), ("k_proj", key), ("v_proj", key)):
        shapes[f"self_attn.{name}.weight"] = (size, hidden)
        if has_bias or has_input_bias:
            shapes[f"self_attn.{name}.bias"] = (size,)
    shapes["self_attn.o_proj.weight"] = (hidden, query)
    if has_bias:
        shapes["self_attn.o_proj.bias"] = (hidden,)
    if config.model_type in HAS_HEAD_NORM:
        for name in ("q_norm", "k_norm"):
            shapes[f"self_attn.{name}.weight"] = (head_dim,)
    return shapes


def _mlp_shapes(config: ModelConfig) -> dict[str, Shape]:
    hidden, inner = config.hidden_size, config.intermediate_size
    shapes: dict[str, Shape] = {"post_attention_layernorm.weight": (hidden,)}
    matrices = {"gate_proj": (inner, hidden), "up_proj": (inner, hidden)}
    for name, (rows, columns) in (matrices | {"down_proj": (hidden, inner)}).items():
        shapes[f"mlp.{name}.weight"] = (rows, columns)
        if config.mlp_bias and config.model_type == "llama":
            shapes[f"mlp.{name}.bias"] = (rows,)
    return shapes


def _some(names: set[str]) -> str:
    """The first few of many names."""
    first = sorted(names)[:3]
    return ", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
