"""What a model folder's config.json says of the architecture, checked and typed.

Torch-free. Knows the keys of Hugging Face configs, old and new; rotary embeddings are
read in `rope_config.py`, towers in `vision_config.py`, tapes in `script.py`; what a family
makes of the values stands in its own file.

Which unknown keys are harmless? `model_type` names an architecture whose definition is
transformers (the keys here are those of 5.24): the family's classes, and the shared code
that they call, which reads keys that no family declares, such as `is_causal`. All that is
read there and changes the maths is read here, or refused by `NEUTRAL`. A key outside that
set (hub configs have dozens: `_name_or_path`, `use_cache`, tool versions) cannot change
what the weights mean. An allow-list of harmless keys would refuse a good model for every
new tool that leaves its mark. Two risks stay. A later transformers may read one key more.
And a family may imitate another's `model_type` with a twist: the usual names of such
twists stand in `NEUTRAL` too, and a twist with weights fails as unexpected tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.fields import Fields
from minimsg.models import FAMILIES
from minimsg.models.picture_config import preprocessor_fields
from minimsg.models.rope_config import DEFAULT_THETA, DefaultRope, Rope, YarnRope, parse_rope
from minimsg.models.script import BYTES_PER_ID, Script, parse_script
from minimsg.models.vision_config import SEEING, VisionConfig, parse_vision, text_fields

NEUTRAL: Final[Mapping[str, tuple[object, ...]]] = {
    "hidden_act": ("silu", "swish"),
    "partial_rotary_factor": (1,),
    "pretraining_tp": (1,),
    "is_causal": (True,),
    "is_encoder_decoder": (False,),
    "add_cross_attention": (False,),
    "quantization_config": (),
    "fusion_config": ({},),
    "transformers_weights": (),  # names another file of weights
    "per_layer_config": ({},),
    "attention_chunk_size": (),
    "attention_multiplier": (),
    "attn_logit_softcapping": (),
    "clip_qkv": (),
    "embedding_multiplier": (1,),
    "final_logit_softcapping": (),
    "logit_scale": (1,),
    "logits_scaling": (1,),
    "no_rope_layers": (1,),  # one a layer: 1 has rotary positions
    "num_experts": (0,),
    "num_local_experts": (0,),
    "query_pre_attn_scalar": (),
    "residual_multiplier": (1,),
    "scale_depth": (1,),
    "scale_emb": (1,),
}
"""Keys that change the maths, with the values (besides null) that leave it as it is.

A list of such values leaves it as it is, too.
"""

UNWINDOWED: Final = ("llama", "qwen3_vl")  # have no window, whatever their config says
MAX_LAYERS: Final = 1024  # several times the deepest published decoder

# Defaults of Qwen2Config and Qwen3Config
SLIDING_WINDOW: Final = 4096
MAX_WINDOW_LAYERS: Final = 28
QWEN3_HEAD_DIM: Final = 128


@dataclass(frozen=True)
class ModelConfig:
    """A decoder's shape. Invariants: Hq is a multiple of Hkv, head_dim is even."""

    model_type: str
    vocab_size: int
    max_position_embeddings: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    rms_norm_eps: float
    rope: Rope
    windows: tuple[int | None, ...]  # one a layer: tokens that it sees; None for all
    plain_context: int | None = None  # tokens up to which attention is the ordinary one
    tie_word_embeddings: bool = False
    attention_bias: bool = False  # read by llama and qwen3
    mlp_bias: bool = False  # read by llama
    script: Script | None = None  # of `scripted` only, which has no weights
    vision: VisionConfig | None = None  # of families that see

    @property
    def max_context(self) -> int:
        """Tokens that the positions reach. YaRN configs often state the window it extends."""
        reach = self.max_position_embeddings
        if isinstance(self.rope, YarnRope):
            reach = max(reach, round(self.rope.factor * self.rope.original_context))
        return min(reach, self.plain_context or reach)

    @classmethod
    def from_folder(cls, folder: Path) -> ModelConfig:
        """Read `folder/config.json`, and what stands beside it of pictures.

        Raises what `from_dict` raises.
        """
        return _parse(Fields.from_file(folder / "config.json"), preprocessor_fields(folder))

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> ModelConfig:
        """Read a config.json that is already parsed.

        Raises:
            CheckpointError: a value is missing, of a wrong type or out of range.
            UnsupportedModel: a value changes the maths in a way that is not implemented.
        """
        return _parse(Fields(data, "config.json"), Fields({}, "preprocessor_config.json"))


def _parse(fields: Fields, pictures: Fields) -> ModelConfig:
    model_type = fields.text("model_type")
    if model_type not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise UnsupportedModel(f"{fields.source}: model_type {model_type!r}; known are {known}")
    if model_type in SEEING:
        return _seeing(fields, pictures)
    return _scripted(fields) if model_type == "scripted" else _decoder(fields)


def _seeing(fields: Fields, pictures: Fields) -> ModelConfig:
    config = _decoder(text_fields(fields))
    vision = parse_vision(
        fields,
        pictures,
        head_dim=config.head_dim,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
    )
    return replace(config, vision=vision)


def _decoder(fields: Fields) -> ModelConfig:
    _refuse_other_maths(fields)
    model_type = fields.text("model_type")
    hidden_size = fields.integer("hidden_size")
    num_heads = fields.integer("num_attention_heads")
    num_layers = fields.integer("num_hidden_layers", maximum=MAX_LAYERS)
    is_qwen3 = model_type in ("qwen3", "qwen3_vl")
    head_dim = QWEN3_HEAD_DIM if is_qwen3 else hidden_size // num_heads
    config = ModelConfig(
        model_type=model_type,
        vocab_size=fields.integer("vocab_size"),
        max_position_embeddings=fields.integer("max_position_embeddings"),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=fields.integer("num_key_value_heads", num_heads),
        head_dim=fields.integer("head_dim", head_dim),
        hidden_size=hidden_size,
        intermediate_size=fields.integer("intermediate_size"),
        rms_norm_eps=fields.number("rms_norm_eps"),
        rope=parse_rope(fields),
        windows=(None,) * num_layers if model_type in UNWINDOWED else _windows(fields, num_layers),
        plain_context=_plain_context(fields),
        tie_word_embeddings=fields.boolean("tie_word_embeddings", False),
        attention_bias=fields.boolean("attention_bias", False),
        mlp_bias=fields.boolean("mlp_bias", False),
    )
    _check_heads(config, fields.source)
    return config


def _check_heads(config: ModelConfig, source: object) -> None:
    if config.num_heads % config.num_kv_heads:
        seen = f"{config.num_heads} attention heads on {config.num_kv_heads} key-value heads"
        raise CheckpointError(source, seen, "a multiple")
    if config.head_dim % 2:
        raise CheckpointError(source, f"head_dim {config.head_dim}", "an even number")


def _refuse_other_maths(fields: Fields) -> None:
    for key, neutral in NEUTRAL.items():
        value = fields.data.get(key)
        values = value if isinstance(value, list) else [value]
        if value is not None and any(each not in neutral for each in values):
            raise UnsupportedModel(f"{fields.source}: {key} = {value!r} is not supported")
    ends = "ForConditionalGeneration" if fields.text("model_type") in SEEING else "ForCausalLM"
    for name in fields.names("architectures"):
        if not name.endswith(ends):
            raise UnsupportedModel(f"{fields.source}: {name} is not a causal language model")
    for name in fields.nested("auto_map").data:
        if name.startswith("AutoModel"):
            raise UnsupportedModel(f"{fields.source}: auto_map: the model is code of its own")


def _windows(fields: Fields, num_layers: int) -> tuple[int | None, ...]:
    """The sliding window of each layer: by `layer_types`, else from `max_window_layers` on.

    Not read by the families of `UNWINDOWED`.
    """
    is_used = fields.boolean("use_sliding_window", False) and "sliding_window" not in fields.nulls
    window = fields.integer("sliding_window", SLIDING_WINDOW) if is_used else None
    types = fields.names("layer_types")
    if types:
        _check_layer_types(fields, types, num_layers, window)
        return tuple(window if name == "sliding_attention" else None for name in types)
    first = fields.integer("max_window_layers", MAX_WINDOW_LAYERS, minimum=0)
    return tuple(window if layer >= first else None for layer in range(num_layers))


def _check_layer_types(
    fields: Fields, types: list[str], num_layers: int, window: int | None
) -> None:
    if len(types) != num_layers:
        raise CheckpointError(fields.source, f"{len(types)} layer_types", f"{num_layers}")
    known = {"full_attention"} if window is None else {"full_attention", "sliding_attention"}
    for name in types:
        if name not in known:
            raise UnsupportedModel(
                f"{fields.source}: layer_types has {name!r} with sliding window {window}"
            )


def _plain_context(fields: Fields) -> int | None:
    """Where dual chunk attention (arXiv 2402.17463, Qwen2.5-1M) begins to differ.

    Within one chunk every distance is the true one; beyond the original positions the
    scores are scaled as well.
    """
    if "dual_chunk_attention_config" not in fields:
        return None
    dual = fields.nested("dual_chunk_attention_config")
    chunk_size = dual.integer("chunk_size")
    return min(chunk_size, dual.integer("original_max_position_embeddings", chunk_size))


def _scripted(fields: Fields) -> ModelConfig:
    """A model without weights: one layer with one head, whose cache holds the ids themselves."""
    vocab_size = fields.integer("vocab_size")
    return ModelConfig(
        model_type="scripted",
        vocab_size=vocab_size,
        max_position_embeddings=fields.integer("max_position_embeddings"),
        num_layers=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=BYTES_PER_ID,
        hidden_size=0,
        intermediate_size=0,
        rms_norm_eps=0.0,
        rope=DefaultRope(DEFAULT_THETA),
        windows=(None,),
        script=parse_script(fields, vocab_size),
    )
