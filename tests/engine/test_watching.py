"""Activations of a running batch: as transformers has them, and changed for one request alone."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from minimsg.config import EngineConfig
from minimsg.engine.engine import GREEDY, Engine
from minimsg.engine.lens import Reading
from minimsg.engine.types import Finish, FinishReason, GenerationRequest, Output, SamplingParams
from minimsg.engine.watching import Functions, Place
from minimsg.errors import GenerationFailed, InvalidRequest
from minimsg.loading import load_engine
from minimsg.models import points

from ..models.checkpoints import save_checkpoint  # noqa: TID252 tests have no absolute name
from .activations import norm_weight, oracle_logits, oracle_points

NUMBERS = random.Random(4)
IDS = NUMBERS.choices(range(128), k=37)
OTHERS = [NUMBERS.choices(range(128), k=length) for length in (5, 21, 40)]
WINDOW: dict[str, object] = {
    "use_sliding_window": True,
    "sliding_window": 21,
    "max_window_layers": 1,
}
BIASES: dict[str, object] = {"attention_bias": True, "mlp_bias": True}
FAMILIES: dict[str, dict[str, object]] = {"llama": BIASES, "qwen2": WINDOW, "qwen3": {}}
CHANGEABLE = [name for name in points.names(2) if not points.is_read_only(name)]
ADDED_UP = ("hook_resid_pre", "hook_resid_mid", "hook_rot_q", "hook_rot_k")  # by no module
DETERMINISTIC = {
    "native": {"deterministic": True, "kernel": "cpu_native"},
    "tiled": {"deterministic": True, "kernel": "tiled"},
    "reference": {"kernel": "reference"},  # alike in the same batches, which these are
    "stock torch": {"kernel": "cpu"},
}

Saved = tuple[Path, Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Saved]:
    """The folder of a checkpoint, and the model of transformers that wrote it."""

    @cache
    def save(family: str) -> Saved:
        folder = tmp_path_factory.mktemp(family)
        return folder, save_checkpoint(folder, family, **FAMILIES[family])

    return save


def open_engine(folder: Path, **settings: Any) -> Engine:
    return load_engine(folder, EngineConfig(**{"dtype": "float32", "num_pages": 32, **settings}))


def ask(id: str, ids: list[int], max_tokens: int = 6, **settings: Any) -> GenerationRequest:
    sampling = SamplingParams(temperature=0, top_logprobs=3)
    return GenerationRequest(id, ids, max_tokens, sampling=sampling, **settings)


def run(
    engine: Engine, requests: Iterable[GenerationRequest], hooks: dict[str, Functions] | None = None
) -> dict[str, list[Output]]:
    """What was said to each request, all numbers included."""
    said: dict[str, list[Output]] = {}
    for request in requests:
        said[request.id] = []
        engine.add(request, (hooks or {}).get(request.id))
    while engine.has_work:
        for output in engine.step():
            said[output.request_id].append(output)
        engine.scheduler.check()
    assert engine.pool.num_used == 0
    return said


def together() -> list[GenerationRequest]:
    return [ask(f"other {i}", ids) for i, ids in enumerate(OTHERS)] + [ask("mine", IDS)]


@pytest.mark.parametrize("kernel", ["cpu_native", "cpu", "reference"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_point_has_the_values_of_transformers(
    saved: Callable[[str], Saved], family: str, kernel: str
) -> None:
    """In chunks of a prompt, beside others."""
    folder, oracle = saved(family)
    expected = oracle_points(oracle, IDS)
    engine = open_engine(folder, kernel=kernel, max_step_tokens=24)
    reading = Reading(["*"])
    run(engine, together(), {"mine": reading.hooks})
    assert reading.seen == list(points.names(2))
    for name in reading.seen:
        if name.endswith("hook_rot_q"):
            continue  # transformers shows it nowhere; it is in the pattern
        values = reading.values(name)[: len(IDS)]
        if name.endswith("hook_normalized"):
            values = values * norm_weight(oracle, name)
        if name.endswith("hook_pattern"):
            values = values[..., : len(IDS)]
        values = values[-len(expected[name]) :]  # theirs keep no key that a window has left
        torch.testing.assert_close(values, expected[name], rtol=1e-5, atol=1e-4, msg=name)


@pytest.mark.parametrize("name", [n for n in CHANGEABLE if not n.endswith(ADDED_UP)])
def test_a_change_has_the_effect_that_it_has_in_transformers(
    saved: Callable[[str], Saved], name: str
) -> None:
    folder, oracle = saved("qwen3")

    def change(values: Tensor) -> Tensor:
        return values * 0.5 + 0.25

    expected = oracle_logits(oracle, IDS, name, change).log_softmax(-1)[-1]
    for kernel in ("cpu_native", "reference"):
        engine = open_engine(folder, kernel=kernel, max_step_tokens=16)
        (token,) = engine.generate(IDS, max_tokens=1, hooks={name: lambda x, _: change(x)})
        assert token.id == int(expected.argmax())
        assert token.logprob == pytest.approx(float(expected.max()), abs=1e-4)


@pytest.mark.parametrize("kernel", ["cpu_native", "reference"])
def test_queries_of_zero_look_at_all_tokens_alike(
    saved: Callable[[str], Saved], kernel: str
) -> None:
    """By hand: each row of the pattern is 1 / n, so each head gives the mean of its values."""
    engine = open_engine(saved("llama")[0], kernel=kernel, max_step_tokens=16)
    reading = Reading(["blocks.1.attn.*"])
    hooks = {**reading.hooks, "blocks.1.attn.hook_rot_q": lambda values, place: 0 * values}
    engine.generate(IDS, max_tokens=1, hooks=hooks)
    counts = torch.arange(1, len(IDS) + 1)
    pattern = torch.tril(1 / counts[:, None] * torch.ones(len(IDS), len(IDS)))
    seen = reading.values("blocks.1.attn.hook_pattern")
    torch.testing.assert_close(seen, pattern[:, None].expand_as(seen))
    means = reading.values("blocks.1.attn.hook_v").cumsum(0) / counts[:, None, None]
    expected = means.repeat_interleave(2, dim=1)
    torch.testing.assert_close(reading.values("blocks.1.attn.hook_z"), expected)


@pytest.mark.parametrize("kernel", ["cpu_native", "reference"])
def test_keys_that_are_changed_lie_in_the_pages(saved: Callable[[str], Saved], kernel: str) -> None:
    """By hand: with a key of zero, a token's score is 0 in every row."""
    engine = open_engine(saved("llama")[0], kernel=kernel, max_step_tokens=16)
    reading = Reading(["blocks.0.attn.hook_pattern", "blocks.0.attn.hook_rot_q"])

    def vanish(values: Tensor, place: Place) -> Tensor:
        return values * 0

    hooks = {**reading.hooks, "blocks.0.attn.hook_rot_k": vanish}
    engine.generate(IDS, max_tokens=3, hooks=hooks)
    last = reading.values("blocks.0.attn.hook_pattern")[-1]
    torch.testing.assert_close(last, torch.full_like(last, 1 / last.shape[-1]))


@pytest.mark.parametrize("settings", DETERMINISTIC.values(), ids=DETERMINISTIC)
def test_neighbours_of_a_request_that_is_changed_are_equal_to_the_last_bit(
    saved: Callable[[str], Saved], settings: dict[str, Any]
) -> None:
    folder, _ = saved("qwen3")
    plain = run(open_engine(folder, max_step_tokens=24, **settings), together())
    for name in CHANGEABLE:
        engine = open_engine(folder, max_step_tokens=24, **settings)
        said = run(engine, together(), {"mine": {name: lambda values, _: -1.5 * values}})
        assert said.pop("mine") != plain["mine"], name
        assert said == {id: plain[id] for id in said}, name


@pytest.mark.parametrize("settings", DETERMINISTIC.values(), ids=DETERMINISTIC)
def test_to_look_changes_no_bit_of_anybody(
    saved: Callable[[str], Saved], settings: dict[str, Any]
) -> None:
    folder, _ = saved("qwen3")
    plain = run(open_engine(folder, max_step_tokens=24, **settings), together())
    looking = open_engine(folder, max_step_tokens=24, **settings)
    assert run(looking, together(), {"mine": Reading(["*"]).hooks}) == plain


def test_what_a_function_does_to_its_copy_is_nothing_to_the_model(
    saved: Callable[[str], Saved],
) -> None:
    folder, _ = saved("qwen3")
    plain = run(open_engine(folder), together())

    def scribble(values: Tensor, place: Place) -> None:
        values.zero_()

    engine = open_engine(folder)
    assert run(engine, together(), {"mine": {"*": scribble}}) == plain


class Counting:
    """A tape: 1, 2, 3, 4 and again, but now and then a 9 that no draft foresees."""

    def __init__(self) -> None:
        self.next = 0

    def mask(self) -> None:
        return None

    def forced(self) -> int:
        return 9 if self.next % 7 == 6 else self.next % 4 + 1

    def advance(self, id: int) -> None:
        self.next += 1

    def rollback(self, n: int) -> None:
        self.next -= n


class Visits:
    """Notes the positions that it is shown at one point."""

    def __init__(self) -> None:
        self.positions: list[int] = []

    def note(self, values: Tensor, place: Place) -> None:
        assert len(values) == len(place.positions)
        self.positions += place.positions


@pytest.mark.parametrize("settings", [{}, {"speculate": 6}, {"max_step_tokens": 9}], ids=str)
def test_each_position_is_shown_once_and_in_order(
    saved: Callable[[str], Saved], settings: dict[str, Any]
) -> None:
    """Of a text that repeats itself, so that drafts would come, beside another like it."""
    engine, visits = open_engine(saved("llama")[0], **settings), Visits()
    requests = [
        ask("mine", [1, 2, 3, 4] * 9, 12, hook=Counting()),
        ask("other", [1, 2, 3, 4] * 5, 12, hook=Counting()),
    ]
    said = run(engine, requests, {"mine": {"blocks.1.hook_resid_mid": visits.note}})
    num_tokens = len(said["mine"]) - 1
    assert visits.positions == list(range(36 + num_tokens - 1))
    assert not settings.get("speculate") or engine.draft_counts.proposed  # of the other


def test_after_preemption_all_positions_are_shown_again(saved: Callable[[str], Saved]) -> None:
    engine, visits = open_engine(saved("llama")[0], num_pages=9, max_context=128), Visits()
    requests = [ask("old", OTHERS[2], 40), ask("mine", IDS, 40)]
    run(engine, requests, {"mine": {"hook_embed": visits.note}})
    assert engine.scheduler.num_preemptions
    starts = [index for index, position in enumerate(visits.positions) if position == 0]
    assert len(starts) == 1 + engine.scheduler.num_preemptions
    assert sorted(set(visits.positions)) == list(range(len(IDS) + 39))
    for start, stop in zip(starts, [*starts[1:], len(visits.positions)], strict=True):
        assert visits.positions[start:stop] == list(range(stop - start))


def test_the_text_of_a_changed_request_is_the_same_after_preemption(
    saved: Callable[[str], Saved],
) -> None:
    folder, _ = saved("llama")

    def steer(values: Tensor, place: Place) -> Tensor:
        return values + 0.3

    hooks: dict[str, Functions] = {"mine": {"blocks.0.hook_resid_post": steer}}
    requests = [ask("old", OTHERS[2], 40), ask("mine", IDS, 40)]
    settings: dict[str, Any] = {"deterministic": True, "max_context": 128}
    roomy = run(open_engine(folder, **settings), requests, hooks)
    narrow = open_engine(folder, num_pages=9, **settings)
    assert run(narrow, requests, hooks) == roomy
    assert narrow.scheduler.num_preemptions


def test_pages_of_one_who_only_looks_are_shared_and_those_of_one_who_changes_are_not(
    saved: Callable[[str], Saved],
) -> None:
    engine = open_engine(saved("llama")[0])
    plain = run(open_engine(saved("llama")[0]), [ask("r", IDS)])["r"]
    run(engine, [ask("mine", IDS)], {"mine": {"blocks.0.hook_mlp_out": lambda x, _: 2 * x}})
    assert engine.add(ask("r", IDS)).reused == 0
    assert drain(engine) == plain
    run(engine, [ask("mine", OTHERS[2])], {"mine": Reading(["*"]).hooks})
    assert engine.add(ask("r", OTHERS[2])).reused == 32
    drain(engine)


def drain(engine: Engine) -> list[Output]:
    said: list[Output] = []
    while engine.has_work:
        said += engine.step()
    return said


def test_only_what_follows_a_change_is_withheld(saved: Callable[[str], Saved]) -> None:
    """The change is in the second of three pages, whose chunks are of a page each."""
    engine = open_engine(saved("llama")[0], max_step_tokens=16)

    def change_late(values: Tensor, place: Place) -> Tensor | None:
        return values * 2 if 20 in place.positions else None

    run(engine, [ask("mine", [*IDS, *IDS])], {"mine": {"hook_embed": change_late}})
    assert engine.add(ask("r", [*IDS, *IDS])).reused == 16
    drain(engine)


def test_one_who_looks_from_a_position_on_takes_what_is_before_it_from_the_cache(
    saved: Callable[[str], Saved],
) -> None:
    engine, all_rows, late_rows = open_engine(saved("llama")[0]), Visits(), Visits()
    run(engine, [ask("r", IDS)])
    request = ask("mine", IDS)
    assert engine.add(request, {"hook_embed": all_rows.note}).reused == 0
    drain(engine)
    engine.hooks.add("mine", {"hook_embed": late_rows.note}, first=20)
    assert engine.add(request).reused == 16
    drain(engine)
    assert all_rows.positions == list(range(len(IDS) + 5))
    assert late_rows.positions == list(range(20, len(IDS) + 5))


def raises(values: Tensor, place: Place) -> Tensor:
    raise KeyError("no direction")


FAULTS: dict[str, tuple[str, Any, str]] = {
    "it raises": ("hook_embed", raises, "KeyError: 'no direction'"),
    "another shape": ("blocks.1.attn.hook_z", lambda x, _: x[:, :1], "is wanted, not ("),
    "no tensor": ("blocks.0.hook_attn_out", lambda x, _: 3, "is wanted, not int"),
    "a point that is read only": ("blocks.0.attn.hook_pattern", lambda x, _: x, "return None"),
    "in its reply": (
        "blocks.0.hook_resid_pre",
        lambda x, place: None if place.positions.start < len(IDS) + 2 else raises(x, place),
        "KeyError",
    ),
}


@pytest.mark.parametrize(("name", "function", "words"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("max_step_tokens", [24, 512])
def test_a_function_that_fails_ends_its_own_request(
    saved: Callable[[str], Saved], name: str, function: Any, words: str, max_step_tokens: int
) -> None:
    settings: dict[str, Any] = {"deterministic": True, "max_step_tokens": max_step_tokens}
    folder, _ = saved("qwen3")
    plain = run(open_engine(folder, **settings), together())
    engine = open_engine(folder, **settings)
    said = run(engine, together(), {"mine": {name: function}})
    finish = said.pop("mine")[-1]
    assert isinstance(finish, Finish)
    assert finish.reason is FinishReason.ERROR
    assert finish.error is not None
    assert finish.error.startswith(f"{name}: ")
    assert words in finish.error
    assert said == {id: plain[id] for id in said}
    with pytest.raises(GenerationFailed, match=name):
        engine.run(ask("mine", IDS), {name: function})


def test_numbers_that_are_none_end_the_request_that_they_were_put_into(
    saved: Callable[[str], Saved],
) -> None:
    settings: dict[str, Any] = {"deterministic": True}
    folder, _ = saved("qwen3")
    plain = run(open_engine(folder, **settings), together())
    engine = open_engine(folder, **settings)
    said = run(engine, together(), {"mine": {"hook_embed": lambda x, _: x * torch.nan}})
    finish = said.pop("mine")[-1]
    assert isinstance(finish, Finish)
    assert finish.error == "the model's logits are not finite"
    assert said == {id: plain[id] for id in said}
    assert run(engine, together()) == plain


def test_a_name_that_is_no_points_is_refused_before_anything_runs(
    saved: Callable[[str], Saved],
) -> None:
    engine = open_engine(saved("llama")[0])
    with pytest.raises(InvalidRequest, match=r"no point 'blocks\.2\.hook_resid_post'; there are"):
        engine.generate(IDS, max_tokens=1, hooks={"blocks.2.hook_resid_post": raises})
    assert not engine.has_work


def test_a_model_without_layers_has_no_points(make_engine: Any) -> None:
    with pytest.raises(InvalidRequest, match="it has none"):
        make_engine().generate([1], max_tokens=1, hooks={"hook_embed": raises})


def test_nobody_is_looked_at_any_more_once_the_request_has_ended(
    saved: Callable[[str], Saved],
) -> None:
    engine, visits = open_engine(saved("llama")[0]), Visits()
    hooks: Functions = {"hook_embed": visits.note}
    engine.add(ask("mine", IDS), hooks)
    engine.step()
    engine.cancel("mine")
    num_seen = len(visits.positions)
    engine.generate(IDS, max_tokens=2)
    engine.run(ask("mine", IDS))  # the same id once more
    assert len(visits.positions) == num_seen > 0
    engine.reset()
    engine.run(ask("mine", IDS))
    assert len(visits.positions) == num_seen


def test_what_looked_on_is_let_go_of_by_the_next_step_of_others(
    saved: Callable[[str], Saved],
) -> None:
    engine, visits = open_engine(saved("llama")[0]), Visits()
    alive = weakref.ref(visits)
    engine.run(ask("mine", IDS), {"hook_embed": visits.note})
    del visits
    engine.generate(IDS, max_tokens=1)
    gc.collect()
    assert alive() is None


def test_while_nobody_looks_all_layers_are_one_call(
    saved: Callable[[str], Saved], monkeypatch: pytest.MonkeyPatch
) -> None:
    from minimsg.kernels import cpu_native

    calls: list[str] = []
    for name in ("run_layers", "attend_heads"):
        method = getattr(cpu_native.Backend, name)

        def noted(*args: Any, name: str = name, method: Any = method, **kwargs: Any) -> Any:
            calls.append(name)
            return method(*args, **kwargs)

        monkeypatch.setattr(cpu_native.Backend, name, noted)
    engine = open_engine(saved("llama")[0], kernel="cpu_native")
    engine.generate(IDS, max_tokens=1, sampling=GREEDY)
    engine.generate(IDS, max_tokens=1, hooks=Reading(["hook_embed"]).hooks)
    assert calls == ["run_layers", "attend_heads", "attend_heads"]
