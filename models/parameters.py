"""The names and shapes of every weight that a config asks for, without torch.

A checkpoint is complete if it holds exactly these. Read when a model is pulled or
converted, before anything is allocated; `weights.py` checks again when it loads.
Knows the dense families (`llama`, `qwen2`, `qwen3`); names are Hugging Face's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from minimsg.errors import CheckpointError, UnsupportedModel

Shape: TypeAlias = tuple[int, ...]

MAX_SIZE: Final = 1 << 24
MAX_LAYERS: Final = 1024  # far above any model, far below what would fill the memory with names


@dataclass(frozen=True)
class Biases:
    """Which projections of a layer have a bias, and whether heads are normalized."""

    qkv: bool = False
    attention_output: bool = False
    mlp: bool = False
    head_norm: bool = False


def parameter_shapes(config: Mapping[str, object], file: object) -> dict[str, Shape]:
    """The shape of each weight, by name, in the order of the forward pass.

    `lm_head.weight` is among them unless the config ties it to the embedding.

    Raises:
        UnsupportedModel: the family is none of ours.
        CheckpointError: `file`, which the config came from, lacks a size or gives it wrongly.
    """

    def size(key: str, default: int | None = None) -> int:
        value = config.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_SIZE:
            raise CheckpointError(
                file, f"{key} is {value!r:.40}", f"a number from 1 to {MAX_SIZE:,}"
            )
        return value

    biases = _biases(config, file)
    hidden, vocab = size("hidden_size"), size("vocab_size")
    num_heads = size("num_attention_heads")
    num_kv_heads = size("num_key_value_heads", num_heads)
    head_dim = size("head_dim", hidden // num_heads)
    layer = _attention_shapes(biases, hidden, num_heads * head_dim, num_kv_heads * head_dim)
    if biases.head_norm:
        layer |= {"self_attn.q_norm.weight": (head_dim,), "self_attn.k_norm.weight": (head_dim,)}
    layer |= _mlp_shapes(biases, hidden, size("intermediate_size"))

    shapes: dict[str, Shape] = {"model.embed_tokens.weight": (vocab, hidden)}
    num_layers = size("num_hidden_layers")
    if num_layers > MAX_LAYERS:
        raise CheckpointError(file, f"{num_layers:,} layers", f"at most {MAX_LAYERS:,}")
    for i in range(num_layers):
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    shapes["model.norm.weight"] = (hidden,)
    if not config.get("tie_word_embeddings", False):
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


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


def _biases(config: Mapping[str, object], file: object) -> Biases:
    attention = bool(config.get("attention_bias", False))
    match config.get("model_type"):
        case "llama":
            return Biases(attention, attention, mlp=bool(config.get("mlp_bias", False)))
        case "qwen2":
            return Biases(qkv=True)
        case "qwen3":
            return Biases(attention, attention, head_norm=True)
        case other:
            raise UnsupportedModel(f"{file}: model_type {other!r}; known: llama, qwen2, qwen3")


def _attention_shapes(biases: Biases, hidden: int, query: int, key: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"input_layernorm.weight": (hidden,)}
    for name, size in (("q_proj", query), ("k_proj", key), ("v_proj", key)):
        shapes[f"self_attn.{name}.weight"] = (size, hidden)
        if biases.qkv:
            shapes[f"self_attn.{name}.bias"] = (size,)
    shapes["self_attn.o_proj.weight"] = (hidden, query)
    if biases.attention_output:
        shapes["self_attn.o_proj.bias"] = (hidden,)
    return shapes


def _mlp_shapes(biases: Biases, hidden: int, intermediate: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {"post_attention_layernorm.weight": (hidden,)}
    for name, rows, columns in (
        ("gate_proj", intermediate, hidden),
        ("up_proj", intermediate, hidden),
        ("down_proj", hidden, intermediate),
    ):
        shapes[f"mlp.{name}.weight"] = (rows, columns)
        if biases.mlp:
            shapes[f"mlp.{name}.bias"] = (rows,)
    return shapes


def _some(names: set[str]) -> str:
    """The first few of many names."""
    first = sorted(names)[:3]
    return ", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
