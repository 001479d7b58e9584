"""Two engines side by side: nothing is found where there is nothing, and what is, where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minimsg.config import EngineConfig
from minimsg.engine.compare import compare
from minimsg.engine.engine import Engine
from minimsg.errors import ConfigError
from minimsg.loading import load_engine

IDS = [(11 * index + 5) % 256 for index in range(30)]


def open_engine(folder: Path, **settings: Any) -> Engine:
    return load_engine(folder, EngineConfig(**{"dtype": "float32", "num_pages": 16, **settings}))


def test_an_engine_beside_its_like_differs_nowhere(folder: Path) -> None:
    comparison = compare(open_engine(folder), open_engine(folder), IDS, max_tokens=4)
    assert comparison.first() is None
    assert comparison.first_token is None
    assert len(comparison.replies[0]) == 4
    assert {each.absolute for each in comparison.differences} == {0.0}


def test_kernels_and_number_formats_are_as_near_as_rounding(folder: Path) -> None:
    exact, other = open_engine(folder, kernel="reference"), open_engine(folder, kernel="cpu")
    assert compare(exact, other, IDS).first(1e-4) is None
    rounded = compare(exact, open_engine(folder, kernel="cpu", dtype="bfloat16"), IDS)
    assert rounded.names == ("reference, float32", "cpu, bfloat16")
    found = rounded.first()
    assert found is not None
    assert found.point == "hook_embed"
    assert 1e-4 < found.relative < 1e-2


@pytest.mark.parametrize(
    ("part", "point"),
    [
        ("attention.output", "blocks.1.hook_attn_out"),
        ("mlp.down", "blocks.1.hook_mlp_out"),
        ("attention.input", "blocks.1.attn.hook_q"),
        ("mlp.gate_up", "blocks.1.mlp.hook_post"),
    ],
)
def test_the_first_difference_is_where_a_weight_differs(
    folder: Path, part: str, point: str
) -> None:
    first, second = (open_engine(folder, kernel="reference") for _ in range(2))
    layer: Any = list(second.runner.model.layers)[1]  # type: ignore[attr-defined]
    layer.get_submodule(part).weight.data[0] += 1.0
    comparison = compare(first, second, IDS)
    found = comparison.first()
    assert found is not None
    assert (found.point, found.layer) == (point, 1)
    assert {each.layer for each in comparison.worst()} == {
        None,
        *range(len(first.runner.cache.layers)),
    }


def test_the_first_token_that_differs_is_found(folder: Path) -> None:
    first, second = open_engine(folder), open_engine(folder)
    said = [token.id for token in first.generate(IDS, max_tokens=6)]
    second.runner.model.norm.weight.data *= -1  # type: ignore[attr-defined]
    comparison = compare(first, second, IDS, max_tokens=6)
    assert comparison.replies[0] == said
    assert comparison.first_token == 0
    assert said[0] != comparison.replies[1][0]


def test_engines_of_models_with_other_layers_cannot_be_compared(
    folder: Path, make_engine: Any
) -> None:
    with pytest.raises(ConfigError, match="the same layers"):
        compare(open_engine(folder), make_engine(), IDS)
