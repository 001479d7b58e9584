"""Tiny random checkpoints made and judged by transformers, the oracle of the families."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

import torch
import transformers
from torch import Tensor, nn

SIZES = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
CONFIGS = {
    "llama": transformers.LlamaConfig,
    "qwen2": transformers.Qwen2Config,
    "qwen3": transformers.Qwen3Config,
}


class Oracle(Protocol):
    """The part of a transformers model that is used here."""

    def __call__(self, ids: Tensor) -> Output: ...


class Output(Protocol):
    logits: Tensor  # (1, T, V)


def save_checkpoint(folder: Path, family: str, **settings: object) -> Oracle:
    """Write a model of `family` to `folder`; all its weights, norms and biases too, are random."""
    head_dim = {"head_dim": 32} if family == "qwen3" else {}  # heads wider than the hidden state
    config = CONFIGS[family](**{**SIZES, **head_dim, **settings})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()  # type: ignore[no-untyped-call]
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in cast(nn.Module, model).named_parameters():
            noise = torch.randn(weight.shape, generator=random) * 0.3
            weight.copy_(1 + noise if "norm" in name else noise)
    model.save_pretrained(folder)
    return cast(Oracle, model)


def read_checkpoint(folder: Path, dtype: torch.dtype) -> Oracle:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    return cast(Oracle, cast(nn.Module, model).eval())


def logits_of(oracle: Oracle, ids: list[int]) -> Tensor:
    """`(T, V)` of one sequence, computed without any cache."""
    with torch.inference_mode():
        return oracle(torch.tensor([ids])).logits[0]


def edit_config(folder: Path, changes: Mapping[str, object], remove: tuple[str, ...] = ()) -> None:
    file = folder / "config.json"
    config = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({key: config[key] for key in config if key not in remove}))


def respell_as_hub(folder: Path, type_key: str) -> None:
    """Rewrite config.json with the keys that hub checkpoints of before transformers 5 have."""
    rope = json.loads((folder / "config.json").read_text())["rope_parameters"]
    theta, kind = rope.pop("rope_theta"), rope.pop("rope_type")
    scaling = None if kind == "default" else {type_key: kind, **rope}
    old = {"rope_theta": theta, "rope_scaling": scaling, "torch_dtype": "float32"}
    edit_config(folder, old, remove=("rope_parameters", "dtype", "layer_types"))
