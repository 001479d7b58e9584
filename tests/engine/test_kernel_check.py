"""The reference beside the kernel that runs: it finds what is wrong, and changes nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import GenerationRequest, Output, SamplingParams, Stepped
from minimsg.errors import ConfigError
from minimsg.loading import load_engine

SAMPLING = SamplingParams(temperature=0, top_logprobs=3)
PROMPTS = ([3] * 21, list(range(40)), [9])


def open_engine(folder: Path, share: float, **settings: Any) -> Engine:
    given = {"dtype": "float32", "num_pages": 24, "max_step_tokens": 24, **settings}
    return load_engine(folder, EngineConfig(check_kernels=share, **given))


def scale_attention(
    engine: Engine, layer: int, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make what a kernel gives in one layer wrong by `factor`."""
    attention: Any = list(engine.runner.model.layers)[layer].attention  # type: ignore[attr-defined]
    name = "attend_rotated" if attention.operator is None else "attend"
    sound = getattr(attention, name)
    monkeypatch.setattr(attention, name, lambda *args: factor * sound(*args))


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
    checks = engine.look().checks
    assert checks is not None
    assert len(checks.latest) == len(engine.runner.model.cache_specs)
    assert max(checks.worst) <= bound
    assert checks.num_steps == plain[0]


@pytest.mark.parametrize("settings", [{"kernel": "cpu"}, {"kernel": "cpu_native"}], ids=str)
def test_a_kernel_that_is_wrong_in_one_layer_is_found_there(
    folder: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(folder, 1.0, **settings)
    scale_attention(engine, 1, 1.01, monkeypatch)
    run(engine)
    checks = engine.look().checks
    assert checks is not None
    assert checks.worst[1] == pytest.approx(0.01, rel=0.05)
    assert max(checks.worst[:1] + checks.worst[2:]) < 1e-5


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
    checks = engine.look().checks
    assert checks is not None
    assert checks.worst[0] == math.inf
    assert max(checks.worst[1:]) < 1e-5  # there the reference has none either


def test_a_check_that_fails_is_logged_and_is_nothing_to_the_reply(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = run(open_engine(folder, 0.0))
    monkeypatch.setattr("minimsg.kernels.reference.Backend.attention", None)
    engine = open_engine(folder, 1.0)
    assert run(engine) == plain
    assert engine.look().checks is None
    assert "layer 0 could not be checked" in caplog.text


def test_only_a_share_of_the_steps_is_checked(folder: Path) -> None:
    engine = open_engine(folder, 0.25)
    engine.generate([1], max_tokens=20)
    checks = engine.look().checks
    assert checks is not None
    assert checks.num_steps == 5


@pytest.mark.parametrize("settings", [{}, {"kernel": "tiled", "deterministic": True}], ids=str)
def test_a_traced_request_is_told_of_the_steps_that_were_checked(
    folder: Path, settings: dict[str, Any]
) -> None:
    engine = open_engine(folder, 0.5, **settings)
    request = GenerationRequest("seen", PROMPTS[1], 6, sampling=SAMPLING, is_traced=True)
    told = [(step.outputs, engine.runner.layer_errors()) for step in engine.steps(request)]
    steps = [each for outputs, _ in told for each in outputs if isinstance(each, Stepped)]
    assert [each.layer_errors is not None for each in steps] == [False, True] * 3 + [False]
    assert [each.layer_errors for each in steps] == [errors for _, errors in told]
    assert {len(each.layer_errors) for each in steps if each.layer_errors is not None} == {2}


def test_a_step_that_functions_look_at_is_not_checked(folder: Path) -> None:
    engine = open_engine(folder, 1.0)
    engine.generate([1], max_tokens=4, hooks={"hook_embed": lambda values, place: 2 * values})
    assert engine.look().checks is None


def test_a_model_without_layers_is_refused(make_engine: Any) -> None:
    with pytest.raises(ConfigError, match="no layers"):
        make_engine(check_kernels=0.5)
