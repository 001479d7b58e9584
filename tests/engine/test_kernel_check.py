"""The reference beside the kernel that runs: it finds what is wrong, and changes nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import GenerationRequest, Output, SamplingParams
from minimsg.errors import ConfigError
from minimsg.loading import load_engine

SAMPLING = SamplingParams(temperature=0, top_logprobs=3)
PROMPTS = ([3] * 21, list(range(40)), [9])


def open_engine(folder: Path, share: float, **settings: Any) -> Engine:
    given = {"dtype": "float32", "num_pages": 24, "max_step_tokens": 24, **settings}
    return load_engine(folder, EngineConfig(check_kernels=share, **given))


def run(engine: Engine) -> tuple[int, list[Output]]:
    """The number of steps, and all that was said."""
    requests = [
        GenerationRequest(str(place), ids, 6, sampling=SAMPLING)
        for place, ids in enumerate(PROMPTS)
    ]
    steps = list(engine.steps(*requests))
    return len(steps), [output for step in steps for output in step.outputs]


@pytest.mark.parametrize(
    ("settings", "bound"),
    [
        ({"kernel": "cpu_native"}, 1e-5),
        ({"kernel": "cpu_native", "deterministic": True}, 1e-5),
        (
            {"kernel": "cpu_native", "dtype": "bfloat16"},
            1e-5,
        ),  # what lies in pages is rounded alike
        ({"kernel": "cpu_native", "dtype": "int8"}, 1e-5),
        ({"kernel": "cpu"}, 1e-5),
        ({"kernel": "cpu", "dtype": "bfloat16"}, 3e-2),
        ({"kernel": "tiled", "deterministic": True}, 1e-5),
        ({"kernel": "reference"}, 0.0),
    ],
    ids=str,
)
def test_a_kernel_that_is_right_is_near_the_reference_and_says_what_it_says_unchecked(
    folder: Path, settings: dict[str, Any], bound: float
) -> None:
    plain = run(open_engine(folder, 0.0, **settings))
    engine = open_engine(folder, 1.0, **settings)
    assert run(engine) == plain
    assert engine.runner.last_check is not None
    assert len(engine.runner.last_check.errors) == len(engine.runner.model.cache_specs)
    check = engine.runner.check
    assert check is not None
    assert max(check.worst) <= bound
    assert check.num_steps >= plain[0]


@pytest.mark.parametrize("settings", [{"kernel": "cpu"}, {"kernel": "cpu_native"}], ids=str)
def test_a_kernel_that_is_wrong_in_one_layer_is_found_there(
    folder: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(folder, 1.0, **settings)
    attention: Any = list(engine.runner.model.layers)[1].attention  # type: ignore[attr-defined]
    name = "attend_rotated" if attention.operator is None else "attend"
    sound = getattr(attention, name)
    monkeypatch.setattr(attention, name, lambda *args: 1.01 * sound(*args))
    run(engine)
    check = engine.runner.check
    assert check is not None
    assert check.worst[1] == pytest.approx(0.01, rel=0.05)
    assert max(check.worst[:1] + check.worst[2:]) < 1e-5


@pytest.mark.parametrize("kernel", ["cpu", "cpu_native"])
def test_a_kernel_that_gives_no_numbers_is_found_in_its_layer(
    folder: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(folder, 1.0, kernel=kernel)
    attention: Any = next(iter(engine.runner.model.layers)).attention  # type: ignore[attr-defined]
    name = "attend_rotated" if attention.operator is None else "attend"
    sound = getattr(attention, name)
    monkeypatch.setattr(attention, name, lambda *args: math.nan * sound(*args))
    run(engine)
    check = engine.runner.check
    assert check is not None
    assert check.worst[0] == math.inf
    assert max(check.worst[1:]) < 1e-5  # there the reference has none either


def test_a_check_that_fails_is_logged_and_is_nothing_to_the_reply(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = run(open_engine(folder, 0.0))
    monkeypatch.setattr("minimsg.kernels.reference.Backend.attention", None)
    engine = open_engine(folder, 1.0)
    assert run(engine) == plain
    assert engine.runner.last_check is None
    assert "layer 0 could not be checked" in caplog.text


def test_only_a_share_of_the_steps_is_checked(folder: Path) -> None:
    engine = open_engine(folder, 0.25)
    engine.generate([1], max_tokens=20)
    assert engine.runner.check is not None
    assert engine.runner.check.num_steps == 5


def test_a_step_that_functions_look_at_is_not_checked(folder: Path) -> None:
    engine = open_engine(folder, 1.0)
    engine.generate([1], max_tokens=4, hooks={"hook_embed": lambda values, place: 2 * values})
    assert engine.runner.last_check is None


def test_a_model_without_layers_is_refused(make_engine: Any) -> None:
    with pytest.raises(ConfigError, match="no layers"):
        make_engine(check_kernels=0.5)
