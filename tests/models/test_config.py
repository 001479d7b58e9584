"""A config is read in both spellings, and what is not understood is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import transformers

from minimsg.errors import CheckpointError, MinimsgError, UnsupportedModel
from minimsg.models.config import ModelConfig
from minimsg.models.rope_config import DefaultRope, LinearRope, Llama3Rope, YarnRope

# What the hub's Qwen2.5-0.5B-Instruct says, and a key that some tool has added.
QWEN2 = {
    "_name_or_path": "somewhere",
    "architectures": ["Qwen2ForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "hidden_act": "silu",
    "hidden_size": 896,
    "initializer_range": 0.02,
    "intermediate_size": 4864,
    "max_position_embeddings": 32768,
    "max_window_layers": 21,
    "model_type": "qwen2",
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": 32768,
    "some_tool_version": {"major": 3},
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}


def changed(**changes: object) -> ModelConfig:
    return ModelConfig.from_dict({**QWEN2, **changes})


def without(key: str) -> ModelConfig:
    return ModelConfig.from_dict({k: v for k, v in QWEN2.items() if k != key})


def test_a_hub_config_is_read() -> None:
    config = changed()
    assert config == ModelConfig(
        model_type="qwen2",
        vocab_size=151936,
        max_position_embeddings=32768,
        num_layers=24,
        num_heads=14,
        num_kv_heads=2,
        head_dim=64,
        hidden_size=896,
        intermediate_size=4864,
        rms_norm_eps=1e-6,
        rope=DefaultRope(theta=1e6),
        windows=(None,) * 24,
        tie_word_embeddings=True,
    )


def test_absent_heads_and_theta_take_the_family_defaults() -> None:
    assert without("num_key_value_heads").num_kv_heads == 14
    assert without("rope_theta").rope == DefaultRope(theta=10_000.0)
    assert without("tie_word_embeddings").tie_word_embeddings is False


@pytest.mark.parametrize("type_key", ["type", "rope_type"])
def test_rope_scaling_is_read_under_both_names_of_its_kind(type_key: str) -> None:
    config = changed(rope_scaling={type_key: "linear", "factor": 4})
    assert config.rope == LinearRope(theta=1e6, factor=4.0)


def test_rope_parameters_carry_their_own_theta() -> None:
    llama3 = {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    assert changed(rope_parameters=llama3).rope == Llama3Rope(5e5, 32.0, 1.0, 4.0, 8192)


def test_yarn_states_a_window_larger_than_the_positions_trained_on() -> None:
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    config = changed(rope_scaling=yarn)
    assert config.rope == YarnRope(theta=1e6, factor=4.0, original_context=32768)
    assert config.max_context == 131072
    assert changed().max_context == 32768


def test_a_window_applies_from_max_window_layers_on() -> None:
    config = changed(use_sliding_window=True, sliding_window=100)
    assert config.windows == (None,) * 21 + (100,) * 3


def test_layer_types_say_which_layers_have_the_window() -> None:
    types = ["sliding_attention", "full_attention"] * 12
    config = changed(use_sliding_window=True, sliding_window=100, layer_types=types)
    assert config.windows == (100, None) * 12


def test_a_window_is_off_where_it_is_null_and_takes_the_familys_defaults_where_it_is_absent() -> (
    None
):
    assert changed(use_sliding_window=True, sliding_window=None).windows == (None,) * 24
    absent = {k: v for k, v in QWEN2.items() if k not in ("sliding_window", "max_window_layers")}
    deep = {**absent, "use_sliding_window": True, "num_hidden_layers": 30}
    theirs = transformers.Qwen2Config.from_dict(deep)
    expected = [kind == "sliding_attention" for kind in theirs.layer_types or []]
    windows = ModelConfig.from_dict(deep).windows
    assert [window is not None for window in windows] == expected
    assert set(windows) == {None, theirs.sliding_window}


def test_a_llama_has_no_window_whatever_its_config_says() -> None:
    said = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}
    types = ["sliding_attention"] * 24
    assert changed(model_type="llama", **said, layer_types=types).windows == (None,) * 24


def test_heads_of_qwen3_have_128_numbers_unless_the_config_says_otherwise() -> None:
    assert changed(model_type="qwen3").head_dim == transformers.Qwen3Config().head_dim
    assert changed(model_type="qwen3", head_dim=32).head_dim == 32


@pytest.mark.parametrize(
    ("dual", "expected"),
    [
        ({"chunk_size": 1000, "local_size": 100}, 1000),
        ({"chunk_size": 1000, "original_max_position_embeddings": 500}, 500),
        ({"chunk_size": 1_000_000}, 32768),
    ],
)
def test_dual_chunk_attention_ends_the_window_where_it_begins_to_differ(
    dual: dict[str, int], expected: int
) -> None:
    assert changed(dual_chunk_attention_config=dual).max_context == expected


@pytest.mark.parametrize("dual", [{}, {"chunk_size": 0}, {"chunk_size": "many"}, [1]])
def test_dual_chunk_attention_without_a_chunk_size_is_refused(dual: object) -> None:
    with pytest.raises(CheckpointError, match="dual_chunk_attention_config"):
        changed(dual_chunk_attention_config=dual)


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}, "rope_parameters": {}}, 4000),
        ({"rope_scaling": {"type": "yarn", "factor": 0.5}}, 1000),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 1000),
    ],
)
def test_the_window_is_what_the_positions_reach(rope: dict[str, object], expected: int) -> None:
    assert changed(max_position_embeddings=1000, **rope).max_context == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_act", "gelu"),
        ("is_causal", False),
        ("fusion_config", {"rms_norm": True}),
        ("transformers_weights", "other.safetensors"),
        ("no_rope_layers", [1, 1, 0]),
        ("rope_scaling", {"rope_type": "default", "factor": 2.0}),
        ("pretraining_tp", 2),
        ("partial_rotary_factor", 0.5),
        ("quantization_config", {"quant_method": "gptq", "bits": 4}),
        ("is_encoder_decoder", True),
        ("per_layer_config", {"0": {"hidden_act": "gelu"}}),
        ("logit_scale", 0.25),
        ("attn_logit_softcapping", 50.0),
        ("num_experts", 8),
        ("model_type", "mamba"),
        ("architectures", ["Qwen2ForSequenceClassification"]),
        ("auto_map", {"AutoModelForCausalLM": "modeling.Mine"}),
        ("layer_types", ["linear_attention"] * 24),
        ("layer_types", ["sliding_attention"] * 24),  # use_sliding_window is false
        ("rope_scaling", {"type": "dynamic", "factor": 2.0}),
        ("rope_scaling", {"type": "linear", "factor": 2.0, "long_factor": [1.0]}),
        ("rope_parameters", {"rope_type": "default", "partial_rotary_factor": 0.5}),
        ("rope_parameters", {"full_attention": {"rope_type": "default"}}),
    ],
)
def test_a_value_that_changes_the_maths_is_refused_by_name(key: str, value: object) -> None:
    named = next(iter(value)) if key in ("architectures", "layer_types") else key  # type: ignore[call-overload]
    with pytest.raises(UnsupportedModel, match=re.escape(named)):
        changed(**{key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [("hidden_act", "swish"), ("pretraining_tp", 1), ("partial_rotary_factor", 1.0),
     ("quantization_config", None), ("architectures", None), ("logit_scale", 1.0),
     ("is_causal", True), ("no_rope_layers", [1] * 24), ("no_rope_layers", []),
     ("rope_scaling", {"rope_type": "default", "factor": 1.0}),
     ("rope_scaling", {"type": "default", "original_max_position_embeddings": 4096})],
)  # fmt: skip
def test_the_value_that_leaves_the_maths_as_it_is_is_accepted(key: str, value: object) -> None:
    assert changed(**{key: value}) == changed()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", "896"),
        ("hidden_size", 896.0),
        ("hidden_size", True),
        ("num_hidden_layers", 0),
        ("num_hidden_layers", 10**9),
        ("vocab_size", -1),
        ("vocab_size", 10**30),
        ("rms_norm_eps", 0),
        ("rms_norm_eps", float("nan")),
        ("rope_theta", 10**400),
        ("rope_theta", "1e6"),
        ("tie_word_embeddings", 1),
        ("num_key_value_heads", 3),
        ("head_dim", 63),
        ("layer_types", ["full_attention"]),
        ("layer_types", "full_attention"),
        ("rope_scaling", [4.0]),
        ("rope_scaling", {"type": "linear"}),
        ("rope_scaling", {"type": "linear", "factor": 0}),
        ("model_type", 7),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(key: str, value: object) -> None:
    named = {"num_key_value_heads": "key-value heads", "rope_scaling": "rope_scaling"}.get(key, key)
    with pytest.raises(CheckpointError, match=named):
        changed(**{key: value})


@pytest.mark.parametrize(
    "key",
    ["model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
     "num_attention_heads", "max_position_embeddings", "rms_norm_eps"],
)  # fmt: skip
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(CheckpointError, match=f"{key} is missing"):
        without(key)


@pytest.mark.parametrize("content", ["", "[1]", "{", '"text"', "[" * 100_000, "\xff"])
def test_a_config_that_is_no_json_object_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(CheckpointError, match=r"config\.json"):
        ModelConfig.from_folder(tmp_path)


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MinimsgError, match="no such file"):
        ModelConfig.from_folder(tmp_path)
