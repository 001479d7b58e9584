"""Limits by hand, for a model of a shape that is easily counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minimsg.bench.limits import find_limits, num_weights, prefill_flop
from minimsg.bench.probes import matmul_gflops, read_bandwidth
from minimsg.bench.rounds import Round
from minimsg.bench.settings import Shapes
from minimsg.models.config import ModelConfig

SMOLLM2 = ModelConfig.from_dict(
    {
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100000.0,
        "tie_word_embeddings": True,
    }
)


def test_the_default_model_has_the_weights_that_its_card_says() -> None:
    """134.5M with norms, which are 61 x 576; the head is 28.3M of them."""
    assert num_weights(SMOLLM2, has_head=True) + 61 * 576 == 134_515_008
    assert prefill_flop(SMOLLM2, 0) == 2 * (134_515_008 - 61 * 576 - 49152 * 576)


def test_shares_are_of_each_rounds_own_bandwidth() -> None:
    """No cache: 134.5M weights of 4 bytes, 538 MB, are read 100 times a second by 53.8 GB/s."""
    weights = 4 * num_weights(SMOLLM2, has_head=True)
    rounds = [Round(50.0, 1.0, weights * 100 / 1e9, 0.1), Round(20.0, 1.0, weights * 40 / 1e9, 0.1)]
    shapes = replace(
        Shapes(), context=0, new_tokens=0, prefills={"prefill_512": 10, "prefill_4096": 20}
    )
    figures = {"decode_1": rounds, "prefill_512": rounds[:1], "prefill_4096": rounds[:1]}
    speed = prefill_flop(SMOLLM2, 10) * 200 / 1e9
    limits = find_limits(SMOLLM2, "float32", shapes, figures, {"float32": 1.0, "int8": speed})
    assert limits.decode_bytes == weights
    assert limits.figures["decode_1"].share == pytest.approx(0.5)
    assert limits.figures["decode_1"].tokens_per_s == pytest.approx(70)
    assert limits.figures["prefill_512"].tokens_per_s == pytest.approx(200)
    assert limits.figures["prefill_512"].share == pytest.approx(0.25)


def test_keys_and_values_are_read_too() -> None:
    """2 x 30 layers x 3 heads x 64 numbers a token, 4 bytes each."""
    rounds = [Round(1.0, 1.0, 1.0, None)]
    figures = {"decode_1": rounds, "prefill_512": rounds, "prefill_4096": rounds}
    shapes = replace(Shapes(), context=100, new_tokens=0)
    limits = find_limits(SMOLLM2, "float32", shapes, figures, {"float32": 1.0})
    cache = limits.decode_bytes - 4 * num_weights(SMOLLM2, has_head=True)
    assert cache == 2 * 30 * 3 * 64 * 100 * 4


def test_products_slower_than_what_was_measured_are_no_limit() -> None:
    figures = {"prefill_512": [Round(50.0, 1.0, 1.0, None)]}
    shapes = replace(Shapes(), prefills={"prefill_512": 512})
    speed = 49 * prefill_flop(SMOLLM2, 512) / 1e9
    assert not find_limits(SMOLLM2, "int8", shapes, figures, {"float32": speed}).figures


def test_the_probes_measure_something() -> None:
    assert read_bandwidth() > 0
    assert all(speed > 0 for speed in matmul_gflops().values())
