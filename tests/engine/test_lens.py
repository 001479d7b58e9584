"""What is read of a prompt: the logit lens and attention, as transformers has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.lens import attention_pattern, logit_lens, read
from minimsg.errors import InvalidRequest
from minimsg.loading import load_engine

from ..models.checkpoints import logits_of, save_checkpoint  # noqa: TID252 no absolute name

IDS = [(7 * index + 3) % 128 for index in range(40)]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("qwen3")
    model: Any = save_checkpoint(folder, "qwen3")
    model.set_attn_implementation("eager")
    return folder, model


@pytest.fixture(params=["cpu_native", "reference"])
def engine(request: pytest.FixtureRequest, oracle: tuple[Path, Any]) -> Engine:
    config = EngineConfig(dtype="float32", kernel=request.param, num_pages=16, max_step_tokens=24)
    return load_engine(oracle[0], config)


def test_the_lens_reads_each_layer_as_if_it_were_the_last(
    engine: Engine, oracle: tuple[Path, Any]
) -> None:
    model = oracle[1]
    with torch.inference_mode():
        hidden = model(torch.tensor([IDS]), output_hidden_states=True).hidden_states
        first = model.lm_head(model.model.norm(hidden[1][0]))
    expected = torch.stack([first, logits_of(model, IDS)])
    torch.testing.assert_close(logit_lens(engine, IDS), expected, rtol=0, atol=1e-4)
    some = logit_lens(engine, IDS, layers=[1], positions=[20, 5])
    torch.testing.assert_close(some, expected[1:, [5, 20]], rtol=0, atol=1e-4)


def test_patterns_are_those_of_eager_attention(engine: Engine, oracle: tuple[Path, Any]) -> None:
    expected = pattern_of(oracle[1])
    torch.testing.assert_close(attention_pattern(engine, IDS), expected, rtol=0, atol=1e-4)


def test_the_keys_of_a_pattern_may_be_in_pages_that_another_has_filled(
    engine: Engine, oracle: tuple[Path, Any]
) -> None:
    engine.generate(IDS, max_tokens=2)
    computed: list[int] = []
    run = engine.runner.run

    def counting(batch: Any) -> Tensor:
        computed.extend(batch.positions)
        return run(batch)

    engine.runner.run = counting  # type: ignore[method-assign]
    found = attention_pattern(engine, IDS, layers=[1], positions=[37])
    expected = pattern_of(oracle[1])[1:, :, 37:38, :38]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert computed == list(range(32, 38))


def pattern_of(model: Any) -> Tensor:
    with torch.inference_mode():
        found = model(torch.tensor([IDS]), output_attentions=True).attentions
    return torch.cat(found)


def test_to_read_what_one_asks_for_by_pattern(engine: Engine) -> None:
    found = read(engine, IDS, ["blocks.*.hook_resid_post", "hook_embed"], positions=[3, 4])
    assert {name: tuple(values.shape) for name, values in found.items()} == {
        "hook_embed": (2, 64),
        "blocks.0.hook_resid_post": (2, 64),
        "blocks.1.hook_resid_post": (2, 64),
    }


@pytest.mark.parametrize("positions", [[], [40], [-1]], ids=str)
def test_a_position_that_the_prompt_has_not_is_refused(
    engine: Engine, positions: list[int]
) -> None:
    with pytest.raises(InvalidRequest, match=r"positions must be among the prompt's, 0\.\.39"):
        attention_pattern(engine, IDS, positions=positions)


def test_a_model_without_layers_has_no_lens(make_engine: Any) -> None:
    with pytest.raises(InvalidRequest, match="no point"):
        logit_lens(make_engine(), [1, 2])
