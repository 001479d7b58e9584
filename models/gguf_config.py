"""The metadata of a .gguf file as config.json and generation_config.json.

One thing is more than renaming: the rotary scaling of Llama 3, which llama.cpp stores
as a tensor of divisors instead of its parameters. A key that would change the maths and
is not understood is refused. The file format is in `gguf.py`, the tensors in
`gguf_weights.py`, the vocabulary in `text/from_gguf.py`.

Source: `convert_hf_to_gguf.py` and `gguf-py/gguf/constants.py` of llama.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.fields import MAX_SIZE
from minimsg.models.config import MAX_LAYERS
from minimsg.models.gguf import GGUF, Value
from minimsg.models.gguf_weights import ROPE_DIVISORS

ARCHITECTURES: Final = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
SAMPLING: Final = {  # Hugging Face's name -> llama.cpp's
    "temperature": "temp",
    "top_k": "top_k",
    "top_p": "top_p",
    "repetition_penalty": "penalty_repeat",
}
# Says nothing that the forward pass would need.
HARMLESS: Final = {"vocab_size", "tensor_data_layout", "rope.scaling.finetuned"}
# Values that leave the maths as it is; any other is refused.
NEUTRAL: Final[Mapping[str, tuple[Value, ...]]] = {
    "expert_count": (0,),
    "expert_used_count": (0,),
    "attention.causal": (True,),
    "attention.sliding_window": (0,),
    "rope.scale_linear": (1.0,),
    "rope.scaling.attn_factor": (0.0, 1.0),
    "rope.scaling.yarn_attn_factor": (1.0,),
    "rope.scaling.yarn_ext_factor": (-1.0, 1.0),
}


def config_from_gguf(file: GGUF) -> dict[str, object]:
    """config.json of the model in the file.

    Raises:
        UnsupportedModel: another architecture, or a setting that is not understood.
        CheckpointError: a key is missing or has a value of the wrong kind.
    """
    architecture = file.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise UnsupportedModel(f"{file.path}: architecture {architecture!r}; known: {known}")
    fields = _Fields(file.path, architecture, file.metadata)
    head_dim = _head_dim(fields)
    config = _sizes(fields, file, head_dim) | _rope(fields, file, head_dim) | _token_ids(file)
    fields.refuse_unread()
    return {
        "architectures": [ARCHITECTURES[architecture]],
        "model_type": architecture,
        "hidden_act": "silu",
        "torch_dtype": "float32",
        **config,
    }


def generation_config_from_gguf(file: GGUF) -> dict[str, object]:
    """generation_config.json: the ids of begin and end, and sampling where the file has it."""
    keys = {name: f"general.sampling.{key}" for name, key in SAMPLING.items()}
    sampling = {
        name: _sampling_number(file, key) for name, key in keys.items() if key in file.metadata
    }
    return _token_ids(file) | ({"do_sample": True, **sampling} if sampling else {})


def _sampling_number(file: GGUF, key: str) -> float:
    """A finite number; whether it is in range is for `prompt/chat.py` to say."""
    value = file.metadata[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CheckpointError(file.path, f"{key} is {value!r:.60}", "a finite number")
    return _shortest(value) if isinstance(value, float) else value


@dataclass
class _Fields:
    """The keys of one architecture; remembers which were read."""

    path: Path
    architecture: str
    metadata: Mapping[str, Value]
    read: set[str] = field(default_factory=set)

    def get(self, key: str) -> Value | None:
        full = f"{self.architecture}.{key}"
        self.read.add(full)
        return self.metadata.get(full)

    def integer(self, key: str, default: int | None = None, maximum: int = MAX_SIZE) -> int:
        value = self.get(key)
        if isinstance(value, list) and value and value.count(value[0]) == len(value):
            value = value[0]  # one for each layer, all the same
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= maximum:
            raise self.error(key, value, f"an integer from 1 to {maximum:,}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise self.error(key, value, "a positive number")
        return _shortest(value)

    def error(self, key: str, value: Value | None, expected: str) -> CheckpointError:
        seen = "missing" if value is None else f"{value!r:.60}"
        return CheckpointError(self.path, f"{self.architecture}.{key} is {seen}", expected)

    def refuse_unread(self) -> None:
        """Raise for a key that nothing here understands and that may change the maths."""
        prefix = self.architecture + "."
        for full in self.metadata.keys() - self.read:
            key = full.removeprefix(prefix)
            known = key in HARMLESS or self.metadata[full] in NEUTRAL.get(key, ())
            if full.startswith(prefix) and not known:
                value = self.metadata[full]
                raise UnsupportedModel(f"{self.path}: {full} = {value!r:.60} is not understood")


def _shortest(value: float) -> float:
    """The decimal that a float32 was made from: 9.999999747378752e-06 -> 1e-05."""
    return float(str(np.float32(value)))


def _head_dim(fields: _Fields) -> int:
    num_heads = fields.integer("attention.head_count")
    default = fields.integer("embedding_length") // num_heads
    head_dim = fields.integer("attention.key_length", default)
    for key in ("attention.value_length", "rope.dimension_count"):
        if fields.integer(key, head_dim) != head_dim:
            raise UnsupportedModel(f"{fields.path}: {key} is not the head size {head_dim}")
    return head_dim


def _sizes(fields: _Fields, file: GGUF, head_dim: int) -> dict[str, object]:
    num_heads = fields.integer("attention.head_count")
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise CheckpointError(file.path, "no tensor token_embd.weight", "the embedding")
    sizes: dict[str, object] = {
        "vocab_size": embedding.shape[0],
        "hidden_size": fields.integer("embedding_length"),
        "intermediate_size": fields.integer("feed_forward_length"),
        "num_hidden_layers": fields.integer("block_count", maximum=MAX_LAYERS),
        "num_attention_heads": num_heads,
        "num_key_value_heads": fields.integer("attention.head_count_kv", num_heads),
        "head_dim": head_dim,
        "max_position_embeddings": fields.integer("context_length"),
        "rms_norm_eps": fields.number("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }
    if fields.architecture != "qwen2":
        sizes["attention_bias"] = "blk.0.attn_q.bias" in file.tensors
    if fields.architecture == "llama":
        sizes["mlp_bias"] = "blk.0.ffn_up.bias" in file.tensors
    return sizes


def _rope(fields: _Fields, file: GGUF, head_dim: int) -> dict[str, object]:
    theta = fields.number("rope.freq_base", 10_000.0)
    kind = _scaling_kind(fields)
    original = fields.get("rope.scaling.original_context_length")
    if ROPE_DIVISORS in file.tensors:
        if kind != "none":
            raise UnsupportedModel(f"{file.path}: {ROPE_DIVISORS} and {kind!r} scaling at once")
        scaling = _llama3_scaling(file, theta, original, head_dim)
    elif kind == "none":
        return {"rope_theta": theta, "rope_scaling": None}
    else:
        scaling = _plain_scaling(fields, kind, original)
    return {"rope_theta": theta, "rope_scaling": scaling}


def _scaling_kind(fields: _Fields) -> Value:
    """llama.cpp scales linearly where no kind is named, and not at all by a factor of 0 or 1."""
    kind, factor = fields.get("rope.scaling.type"), fields.get("rope.scaling.factor")
    if kind in (None, "linear"):
        return "none" if factor in (None, 0, 1) else "linear"
    return kind


def _plain_scaling(fields: _Fields, kind: Value, original: Value | None) -> dict[str, object]:
    """Scaling that its parameters describe: linear (position interpolation) or yarn."""
    if kind not in ("linear", "yarn"):
        raise UnsupportedModel(f"{fields.path}: rope scaling {kind!r}; known: linear, yarn, llama3")
    scaling: dict[str, object] = {"rope_type": kind, "factor": fields.number("rope.scaling.factor")}
    if kind == "yarn":
        if original is not None:
            scaling["original_max_position_embeddings"] = original
        for name in ("beta_fast", "beta_slow"):
            if fields.get(f"rope.scaling.yarn_{name}") is not None:
                scaling[name] = fields.number(f"rope.scaling.yarn_{name}")
    return scaling


def _llama3_scaling(
    file: GGUF, theta: float, original: Value | None, head_dim: int
) -> dict[str, object]:
    """The parameters that give the stored divisors of the rotary frequencies.

    Every Llama 3.x was published with low 1, high 4 and 8192 positions; what was used is
    confirmed by computing the divisors again.
    """
    stored = file.dequantize(ROPE_DIVISORS).reshape(-1).astype(np.float64)  # (D/2,)
    if stored.size != head_dim // 2 or not (stored > 0).all():
        seen = f"{ROPE_DIVISORS} with {stored.size} values, the lowest {stored.min():g}"
        raise CheckpointError(file.path, seen, f"{head_dim // 2} divisors above 0")
    factor, low, high = _shortest(float(stored.max())), 1.0, 4.0
    positions = original if isinstance(original, int) else 8192
    frequency = theta ** -(np.arange(stored.size) / stored.size)
    turns = positions * frequency / (2 * math.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    expected = 1 / ((1 - smooth) / factor + smooth)
    if not np.allclose(stored, expected, rtol=1e-4):
        raise UnsupportedModel(
            f"{file.path}: {ROPE_DIVISORS} is not the scaling of Llama 3 "
            f"(factor {factor:g}, low 1, high 4, {positions} positions)"
        )
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": low,
        "high_freq_factor": high,
        "original_max_position_embeddings": positions,
    }


def _token_ids(file: GGUF) -> dict[str, object]:
    """Ids of begin and end. A turn may end in several ways: end of text, turn, message."""
    ends = [_token_id(file, name) for name in ("eos", "eot", "eom")]
    unique = list(dict.fromkeys(id for id in ends if id is not None))
    return {
        "bos_token_id": _token_id(file, "bos"),
        "eos_token_id": unique[0] if len(unique) == 1 else unique or None,
        "pad_token_id": _token_id(file, "padding"),
    }


def _token_id(file: GGUF, name: str) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    value = file.metadata.get(key)
    if value is None or (type(value) is int and value >= 0):
        return value
    raise CheckpointError(file.path, f"{key} is {value!r:.60}", "a token id")
