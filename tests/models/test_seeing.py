"""Models that see equal transformers: pixels exactly, logits to 1e-4, in float32.

Random weights at a few layers; logits have a standard deviation of about 2. A picture's
row, column, window or level in the wrong place moves them by more than 0.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from minimsg.engine.lens import Reading
from minimsg.engine.types import Watched
from minimsg.errors import CheckpointError, UnsupportedModel
from minimsg.hub.checkpoint import check_folder
from minimsg.models.config import ModelConfig
from minimsg.models.pixels import fitted_size, patches_of
from minimsg.models.vision_config import VisionConfig

from .checkpoints import edit_config
from .paged import KERNELS, load
from .seeing_checkpoints import FAMILIES, PATCH, SeeingOracle, picture, save_seeing
from .seeing_run import SeeingRun, Words

TOLERANCE = 1e-4
SIZES = [(30, 40), (100, 13), (8, 8), (64, 64), (41, 77), (1, 150), (200, 300)]


Save = Callable[[str], tuple[Path, SeeingOracle]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Save:
    @cache
    def save(family: str) -> tuple[Path, SeeingOracle]:
        folder = tmp_path_factory.mktemp("checkpoint")
        return folder, save_seeing(folder, family)

    return save


def vision_of(folder: Path) -> VisionConfig:
    vision = ModelConfig.from_folder(folder).vision
    assert vision is not None
    return vision


def run_of(folder: Path, kernel: str = "cpu") -> SeeingRun:
    return SeeingRun(load(folder, kernel), ModelConfig.from_folder(folder))


@pytest.mark.parametrize("size", SIZES)
def test_pixels_are_those_of_transformers_to_the_last_bit(
    size: tuple[int, int], saved: Save
) -> None:
    folder, oracle = saved("qwen3_vl")
    given, config = picture(*size), vision_of(folder).pictures
    expected = oracle.pixels([given])
    width, height = fitted_size(*size, config)
    assert expected["image_grid_thw"].tolist() == [[1, height // PATCH, width // PATCH]]
    scaled = given.resize((width, height), Image.Resampling.BICUBIC).tobytes()
    patches = patches_of(scaled, width, height, config, PATCH, 2)
    assert torch.equal(torch.from_numpy(patches), expected["pixel_values"])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_whole_chunked_decoded_and_beside_text(
    family: str, kernel: str, saved: Save
) -> None:
    """Chunks of 7 cut through the pictures, which have 20, 24 and 8 tokens."""
    folder, oracle = saved(family)
    pictures = [picture(30, 40), picture(100, 13, seed=1), picture(16, 32, seed=2)]
    words: Words = [5, 6, pictures[0], 7, 8, 9, pictures[1], pictures[2], 10, 11]
    run = run_of(folder, kernel)
    ids = run.open("whole", words)
    run.open("chunked", words)
    text = run.open("text", list(range(1, 60)))
    said = [17, 90, 3]
    expected = oracle.logits([*ids, *said], pictures)
    expected_text = oracle.logits(text, [])
    done = 0
    for start in range(0, len(ids), 7):
        count = min(7, len(ids) - start)
        step = (
            run.step({"text": 3, "chunked": count}) if done < 54 else run.step({"chunked": count})
        )
        assert (step["chunked"] - expected[start : start + count]).abs().max() <= TOLERANCE
        if "text" in step:
            assert (step["text"] - expected_text[done : done + 3]).abs().max() <= TOLERANCE
            done += 3
    whole = run.step({"whole": len(ids)})["whole"]
    assert (whole - expected[: len(ids)]).abs().max() <= TOLERANCE
    for place, id in enumerate(said, len(ids)):
        run.say("whole", id)
        run.say("chunked", id)
        for logits in run.step({"whole": 1, "chunked": 1}).values():
            assert (logits[0] - expected[place]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
def test_logits_equal_for_each_size(family: str, size: tuple[int, int], saved: Save) -> None:
    folder, oracle = saved(family)
    run = run_of(folder)
    ids = run.open("one", [5, picture(*size), 6, 7])
    logits = run.step({"one": len(ids)})["one"]
    assert (logits - oracle.logits(ids, [picture(*size)])).abs().max() <= TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_text_alone_takes_the_plain_way_and_has_the_same_logits(family: str, saved: Save) -> None:
    folder, oracle = saved(family)
    run = run_of(folder)
    ids = run.open("text", list(range(1, 50)))
    logits = run.step({"text": len(ids)})["text"]
    assert run.batch is not None
    assert (run.batch.axes, run.batch.pictures) == ([], [])
    assert (logits - oracle.logits(ids, [])).abs().max() <= TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_to_look_at_a_picture_s_rows_changes_no_bit(family: str, saved: Save) -> None:
    """Every point is come to, and the stream is what goes on: but for what a tower adds to it."""
    folder, _ = saved(family)
    plain, watched, reading = run_of(folder), run_of(folder), Reading(["*"])
    for run in (plain, watched):
        ids = run.open("one", [5, 6, picture(90, 60), 7, 8])
    points = watched.runner.hooks.points
    watched.runner.hooks.open("one", Watched(dict.fromkeys(points, reading.hooks["*"])))
    for count in (11, len(ids) - 11):
        expected = plain.step({"one": count})["one"]
        assert torch.equal(watched.step({"one": count})["one"], expected)
    assert reading.seen == list(points)
    added = reading.values("blocks.1.hook_resid_pre") - reading.values("blocks.0.hook_resid_post")
    text = torch.tensor([0, 1, len(ids) - 2, len(ids) - 1])
    assert added[text].abs().max() == 0
    assert (added.abs().max() > 0) == (family == "qwen3_vl")


def respelled(folder: Path, family: str) -> None:
    """As on the hub before `text_config`: flat, with `rope_theta` and `rope_scaling`."""
    config = json.loads((folder / "config.json").read_text())
    text = config.pop("text_config")
    rope = text.pop("rope_parameters")
    kind = "mrope" if family == "qwen2_5_vl" else rope["rope_type"]
    sections = {key: value for key, value in rope.items() if key.startswith("mrope")}
    old = {"rope_theta": rope["rope_theta"], "rope_scaling": {"type": kind, **sections}}
    (folder / "config.json").write_text(json.dumps({**text, **old, **config}))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_flat_spelling_and_the_other_prefixes_give_the_same_logits(
    family: str, tmp_path: Path
) -> None:
    oracle = save_seeing(tmp_path, family)
    respelled(tmp_path, family)
    rename_tensors(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    check_folder(tmp_path)
    run = run_of(tmp_path)
    ids = run.open("one", [5, picture(30, 40), 6, 7])
    logits = run.step({"one": len(ids)})["one"]
    assert (logits - oracle.logits(ids, [picture(30, 40)])).abs().max() <= TOLERANCE


def rename_tensors(folder: Path) -> None:
    """From `model.*` and `visual.*` to `model.language_model.*` and `model.visual.*`, or back."""
    file = folder / "model.safetensors"
    renamed = {_other_name(name): tensor for name, tensor in load_file(file).items()}
    save_file(renamed, file)


def _other_name(name: str) -> str:
    if name.startswith("visual."):
        return f"model.{name}"
    for prefix, other in (("model.language_model.", "model."), ("model.visual.", "visual.")):
        if name.startswith(prefix):
            return other + name.removeprefix(prefix)
    return name.replace("model.", "model.language_model.") if name.startswith("model.") else name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tied_head_is_the_embedding(family: str, tmp_path: Path) -> None:
    oracle = save_seeing(tmp_path, family, tie_word_embeddings=True)
    (tmp_path / "tokenizer.json").write_text("{}")
    check_folder(tmp_path)
    run = run_of(tmp_path)
    ids = run.open("one", [5, picture(30, 40), 6])
    logits = run.step({"one": len(ids)})["one"]
    assert (logits - oracle.logits(ids, [picture(30, 40)])).abs().max() <= TOLERANCE


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"hidden_act": "relu"}, "hidden_act"),
        ({"out_hidden_size": 32}, "out_hidden_size"),
        ({"in_channels": 4}, "in_channels"),
        ({"num_position_embeddings": 35}, "square"),
        ({"deepstack_visual_indexes": [3]}, "deepstack_visual_indexes"),
        ({"deepstack_visual_indexes": [2, 0]}, "deepstack_visual_indexes"),
        ({"num_heads": 16}, "multiple of 4"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "axial"),
    ],
)
def test_a_tower_that_is_not_understood_is_refused(
    changes: dict[str, object], why: str, saved: Save
) -> None:
    folder, _ = saved("qwen3_vl")
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"] |= changes
    with pytest.raises((CheckpointError, UnsupportedModel), match=why):
        ModelConfig.from_dict(config)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"patch_size": 14}, "patch_size"),
        ({"do_resize": False}, "do_resize"),
        ({"resample": 2}, "bicubic"),
        ({"image_std": [0.5, 0.0, 0.5]}, "image_std"),
        ({"size": {"shortest_edge": 9000, "longest_edge": 8000}}, "range"),
    ],
)
def test_a_preprocessor_that_is_not_understood_is_refused(
    said: dict[str, object], why: str, tmp_path: Path
) -> None:
    save_seeing(tmp_path, "qwen3_vl")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    with pytest.raises((CheckpointError, UnsupportedModel), match=why):
        ModelConfig.from_folder(tmp_path)


def test_the_bounds_of_a_picture_are_read_in_each_spelling(tmp_path: Path) -> None:
    save_seeing(tmp_path, "qwen3_vl")
    old = {"min_pixels": 128, "max_pixels": 640}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(old))
    assert (vision_of(tmp_path).pictures.min_pixels, vision_of(tmp_path).pictures.max_pixels) == (
        128,
        640,
    )
    new = {"image_processor": {"size": {"shortest_edge": 192, "longest_edge": 512}}}
    (tmp_path / "processor_config.json").write_text(json.dumps(new))
    assert (vision_of(tmp_path).pictures.min_pixels, vision_of(tmp_path).pictures.max_pixels) == (
        192,
        512,
    )


def test_an_interleaving_that_the_family_has_not_is_refused(tmp_path: Path) -> None:
    save_seeing(tmp_path, "qwen2_5_vl")
    text = json.loads((tmp_path / "config.json").read_text())["text_config"]
    text["rope_parameters"]["mrope_interleaved"] = True
    edit_config(tmp_path, {"text_config": text})
    with pytest.raises(UnsupportedModel, match="mrope_interleaved"):
        ModelConfig.from_folder(tmp_path)
