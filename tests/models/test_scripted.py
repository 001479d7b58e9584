"""The scripted model says its tapes, and reads them off the cache it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from minimsg.errors import CheckpointError
from minimsg.kernels import choose
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Model
from minimsg.models.weights import load_model

from .paged import PagedRun

START, END = [7, 8], 2
FIRST, SECOND = [300, 65_535, 70_001], [40, 41]  # ids that no 16-bit float holds
CONFIG = {
    "model_type": "scripted",
    "vocab_size": 70_002,
    "max_position_embeddings": 512,
    "start_ids": START,
    "tapes": [FIRST, SECOND],
    "end_id": END,
}
PROMPT = [5, 6, 69_999, *START]


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Model:
    return load_config(folder, CONFIG, dtype)


def load_config(folder: Path, config: object, dtype: torch.dtype = torch.float32) -> Model:
    (folder / "config.json").write_text(json.dumps(config))
    cpu = torch.device("cpu")
    backend = choose(device=cpu, dtype=dtype, head_dim=4)
    return load_model(folder, dtype=dtype, device=cpu, backend=backend)


def say(run: PagedRun, name: str, prompt: list[int], count: int) -> list[int]:
    """Greedy continuation of `prompt` by `count` ids."""
    said: list[int] = []
    new = prompt
    for _ in range(count):
        new = [int(run.step({name: new})[name][-1].argmax())]
        said += new
    return said


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_tape_is_said_and_then_the_end_id(tmp_path: Path, dtype: torch.dtype) -> None:
    run = PagedRun(load(tmp_path, dtype), dtype)
    assert say(run, "a", PROMPT, 5) == [*FIRST, END, END]


def test_the_next_turn_says_the_next_tape_and_later_ones_the_last(tmp_path: Path) -> None:
    run = PagedRun(load(tmp_path))
    second = [*PROMPT, *FIRST, END, 9, *START]
    third = [*second, *SECOND, END, 9, *START]
    assert say(run, "second", second, 3) == [*SECOND, END]
    assert say(run, "third", third, 3) == [*SECOND, END]


def test_a_turn_that_is_begun_for_it_is_continued(tmp_path: Path) -> None:
    assert say(PagedRun(load(tmp_path)), "a", [*PROMPT, FIRST[0]], 2) == FIRST[1:]


def test_outside_a_turn_it_ends(tmp_path: Path) -> None:
    run = PagedRun(load(tmp_path))
    assert say(run, "short", [7], 1) == [END]
    assert say(run, "long", [1, 2, 3, 8, 7], 1) == [END]


def test_every_row_of_a_step_continues_its_own_context(tmp_path: Path) -> None:
    logits = PagedRun(load(tmp_path)).step({"a": [*PROMPT, *FIRST], "b": [*START, FIRST[0]]})
    assert logits["a"].argmax(dim=1).tolist()[4:] == [*FIRST, END]
    assert logits["b"].argmax(dim=1).tolist()[1:] == FIRST[:2]
    assert logits["a"].softmax(dim=1).max(dim=1).values.min() == 1.0


def test_a_page_that_holds_other_ids_gives_another_text(tmp_path: Path) -> None:
    run = PagedRun(load(tmp_path))
    prompt = [*range(20, 40), *START]  # the turn begins in the second page
    assert say(run, "a", prompt, 1) == FIRST[:1]
    run.tables["a"].reverse()
    assert say(run, "a", FIRST[:1], 1) != FIRST[1:2]


def test_its_config_states_what_an_engine_needs(tmp_path: Path) -> None:
    model = load(tmp_path)
    config = ModelConfig.from_folder(tmp_path)
    assert (config.vocab_size, config.max_context, config.head_dim) == (70_002, 512, 4)
    assert (model.vocab_size, len(model.cache_specs)) == (70_002, 1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("start_ids", []),
        ("start_ids", [70_002]),
        ("start_ids", [-1]),
        ("start_ids", "7"),
        ("tapes", []),
        ("tapes", [[]]),
        ("tapes", [[1], 2]),
        ("tapes", [[1, 7, 8, 3]]),  # start_ids inside
        ("end_id", 70_002),
        ("end_id", None),
    ],
)
def test_a_script_that_cannot_run_is_refused(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_config(tmp_path, {**CONFIG, key: value})
