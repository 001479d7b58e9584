"""Our logits equal those of transformers, for each family, rope and option, in float32.

Random weights at two layers prove the maths without a download. Logits have a standard
deviation of about 1.8 here; a wrong frequency or mask moves them by more than 0.01.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import pytest
import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from minimsg.models.config import ModelConfig
from minimsg.models.contract import Model
from minimsg.models.layers import Decoder
from minimsg.models.rope import Rotary

from .checkpoints import Oracle, logits_of, read_checkpoint, respell_as_hub, save_checkpoint
from .paged import KERNELS, PagedRun, load

TOLERANCE = 1e-4
PROMPT, DECODED = 40, 6  # longer than two pages, a window, and every original context below
IDS = random.Random(0).choices(range(128), k=PROMPT + DECODED)
OTHER_IDS = random.Random(1).choices(range(128), k=PROMPT + DECODED)

LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
}  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
ROPES = {
    "default": {"rope_type": "default", "rope_theta": 1e5},
    "linear": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.5},
    "llama3": LLAMA3,
    "yarn": YARN,
    "yarn, its betas": {**YARN, "beta_fast": 16.0, "beta_slow": 2.0},
    "yarn, its attention factor": {**YARN, "attention_factor": 0.7},
    "yarn, its mscales": {**YARN, "mscale": 1.5, "mscale_all_dim": 0.8},
    "yarn, not truncated": {**YARN, "truncate": False},
}
WINDOW = {"use_sliding_window": True, "sliding_window": 21, "max_window_layers": 1}
OPTIONS = {
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, a window that it never reads": ("llama", WINDOW),
    "llama, all biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, wide heads": ("llama", {"head_dim": 48}),
    "llama, one kv head": ("llama", {"num_key_value_heads": 1}),
    "llama, a large epsilon": ("llama", {"rms_norm_eps": 0.1}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2, a window in the upper layer": ("qwen2", WINDOW),
    "qwen2, a window that is not used": ("qwen2", {**WINDOW, "use_sliding_window": False}),
    "qwen3, tied": ("qwen3", {"tie_word_embeddings": True}),
    "qwen3, biases": ("qwen3", {"attention_bias": True}),
    "qwen3, windows by layer type": (
        "qwen3", {**WINDOW, "layer_types": ["sliding_attention", "full_attention"]},
    ),
}  # fmt: skip


Save = Callable[..., tuple[Path, Oracle]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Save:
    """A checkpoint of a family, saved once for all kernels that are to read it."""

    @cache
    def save(family: str, settings: str) -> tuple[Path, Oracle]:
        folder = tmp_path_factory.mktemp("checkpoint")
        return folder, save_checkpoint(folder, family, **json.loads(settings))

    return lambda family, **settings: save(family, json.dumps(settings))


def assert_same_logits(model: Model, oracle: Oracle) -> None:
    """Whole prefill, prefill in chunks of 7, and each decode step after either."""
    expected = logits_of(oracle, IDS)
    run = PagedRun(model)
    for start in range(0, PROMPT, 7):
        stop = min(start + 7, PROMPT)
        chunk = run.step({"chunked": IDS[start:stop]})["chunked"]
        assert (chunk - expected[start:stop]).abs().max() <= TOLERANCE
    whole = run.step({"whole": IDS[:PROMPT]})["whole"]
    assert whole.dtype == torch.float32
    assert (whole - expected[:PROMPT]).abs().max() <= TOLERANCE
    for position in range(PROMPT, PROMPT + DECODED):
        step = run.step({"whole": [IDS[position]], "chunked": [IDS[position]]})
        for logits in step.values():
            assert (logits[0] - expected[position]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rope", ROPES.values(), ids=ROPES)
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_logits_equal_for_each_family_and_rope(
    family: str, rope: dict[str, object], kernel: str, saved: Save
) -> None:
    folder, oracle = saved(family, rope_parameters=rope)
    assert_same_logits(load(folder, kernel), oracle)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("family", "settings"), OPTIONS.values(), ids=OPTIONS)
def test_logits_equal_for_each_option(
    family: str, settings: dict[str, object], kernel: str, saved: Save
) -> None:
    folder, oracle = saved(family, **settings)
    assert_same_logits(load(folder, kernel), oracle)


@pytest.mark.parametrize("type_key", ["type", "rope_type"])
@pytest.mark.parametrize("rope", ROPES.values(), ids=ROPES)
def test_a_config_in_the_old_spelling_gives_the_same_logits(
    rope: dict[str, object], type_key: str, tmp_path: Path
) -> None:
    oracle = save_checkpoint(tmp_path, "qwen2", rope_parameters=dict(rope))
    respell_as_hub(tmp_path, type_key)
    assert_same_logits(load(tmp_path), oracle)


def test_the_old_spelling_of_a_window_gives_the_same_logits(tmp_path: Path) -> None:
    oracle = save_checkpoint(tmp_path, "qwen2", **WINDOW)
    respell_as_hub(tmp_path, "type")
    assert_same_logits(load(tmp_path), oracle)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sequences_that_share_a_step_do_not_see_each_other(kernel: str, saved: Save) -> None:
    folder, oracle = saved("qwen3", **WINDOW)
    expected = logits_of(oracle, IDS)
    other_expected = logits_of(oracle, OTHER_IDS)
    run = PagedRun(load(folder, kernel))
    run.step({"one": IDS[:30], "two": OTHER_IDS[:12]})
    mixed = run.step({"two": OTHER_IDS[12:31], "one": IDS[30:31], "three": OTHER_IDS[:17]})
    assert (mixed["one"] - expected[30:31]).abs().max() <= TOLERANCE
    assert (mixed["two"] - other_expected[12:31]).abs().max() <= TOLERANCE
    assert (mixed["three"] - other_expected[:17]).abs().max() <= TOLERANCE


def test_positions_in_the_thousands_have_the_same_angles(tmp_path: Path) -> None:
    """One token far out: an angle is position times frequency, so rounding shows there."""
    save_checkpoint(tmp_path, "llama", rope_parameters=LLAMA3, max_position_embeddings=100_000)
    embedding = LlamaRotaryEmbedding(transformers.AutoConfig.from_pretrained(tmp_path))
    positions = torch.tensor([0, 1, 4_095, 99_999])
    cos, sin = embedding(torch.zeros(1), positions[None])
    config = ModelConfig.from_folder(tmp_path)
    ours = Rotary(config.rope, config.head_dim)(positions, torch.float32, int(positions.max()) + 1)
    assert (ours.cos[:, 0] - cos[0]).abs().max() <= 1e-6
    half = config.head_dim // 2
    assert (ours.sin[:, 0, half:] - sin[0, :, half:]).abs().max() <= 1e-6
    assert (ours.sin[:, 0, :half] + sin[0, :, :half]).abs().max() <= 1e-6


@pytest.mark.parametrize("rows", [[19, 3], []])
def test_only_the_sampled_rows_get_logits(rows: list[int], tmp_path: Path) -> None:
    expected = logits_of(save_checkpoint(tmp_path, "llama"), IDS)
    run = PagedRun(load(tmp_path))
    sample_rows = torch.tensor(rows, dtype=torch.int64)
    inputs = replace(run.inputs({"one": IDS[:20]}), sample_rows=sample_rows)
    torch.testing.assert_close(
        run.model(inputs, run.cache), expected[sample_rows], rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_in_half_precision_we_are_as_close_to_float32_as_transformers(
    family: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    exact = logits_of(save_checkpoint(tmp_path, family), IDS)
    theirs = logits_of(read_checkpoint(tmp_path, dtype), IDS)
    ours = PagedRun(load(tmp_path, dtype=dtype), dtype).step({"one": IDS})["one"]
    assert ours.dtype == torch.float32
    assert (ours - exact).abs().mean() <= 1.2 * (theirs - exact).abs().mean()


@pytest.mark.skipif("cpu_native" not in KERNELS, reason="no compiler for the kernel")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize(("family", "settings"), OPTIONS.values(), ids=OPTIONS)
def test_all_layers_in_one_call_have_the_bits_of_one_after_the_other(
    family: str, settings: dict[str, object], dtype: torch.dtype, saved: Save
) -> None:
    folder, _ = saved(family, **settings)
    at_once, in_turn = (load(folder, "cpu_native", dtype) for _ in range(2))
    assert cast(Decoder, at_once).operator is not None
    cast(Decoder, in_turn).operator = None
    cached = torch.float32 if dtype is torch.float32 else torch.bfloat16
    runs = [PagedRun(model, cached) for model in (at_once, in_turn)]
    for new in ({"one": IDS[:20]}, {"one": IDS[20:21], "two": OTHER_IDS}, {"two": [5]}):
        for name, logits in runs[0].step(new).items():
            assert torch.equal(logits, runs[1].step({name: new[name]})[name])
