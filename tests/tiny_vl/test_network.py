"""The network that is trained, the model that is served and transformers give the same logits."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import transformers
from PIL.Image import Image
from safetensors.torch import load_file
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from minimsg.models.config import ModelConfig
from minimsg.models.vision_config import VisionConfig
from minimsg.tiny_vl.cells import GROUND_NAMES, NAMES, NOUNS, cells_of, masks_of
from minimsg.tiny_vl.checkpoint import FOLDER, WEIGHTS
from minimsg.tiny_vl.exam import exam
from minimsg.tiny_vl.lessons import NOTHING, Batch, make_batch
from minimsg.tiny_vl.muon import orthogonal
from minimsg.tiny_vl.network import Network
from minimsg.tiny_vl.scenes import Scene, Thing
from minimsg.tiny_vl.vocabulary import ASSISTANT, TURN_END, USER, make_tokenizer

from ..models.paged import KERNELS, load  # noqa: TID252 tests have no absolute name
from ..models.seeing_checkpoints import SeeingOracle  # noqa: TID252
from ..models.seeing_run import SeeingRun, Words  # noqa: TID252

TOLERANCE = 1e-4  # logits have a standard deviation of several


@pytest.fixture(scope="module")
def network() -> Network:
    """The trained one in float32."""
    network = Network(ModelConfig.from_folder(FOLDER))
    stored = load_file(FOLDER / WEIGHTS)
    network.load_state_dict({name: value.float() for name, value in stored.items()})
    return network.eval()


def conversations() -> list[Words]:
    """Two pictures of different sizes with a question each, as ids; then both in one."""
    tokenizer = make_tokenizer()

    def control(token: str) -> int:
        id = tokenizer.token_to_id(token)
        assert id is not None
        return id

    apart: list[list[int | Image]] = []
    for item in list(exam(5))[3:]:
        asked = tokenizer.encode(item.question.text).ids
        ends = [control(TURN_END), control(ASSISTANT)]
        apart.append([control(USER), item.picture, *asked, *ends])
    return [*apart, [*apart[0], 300, control(TURN_END), *apart[1]]]


@pytest.fixture(scope="module")
def genuine() -> Any:
    kind: Any = transformers.Qwen3VLForConditionalGeneration
    return kind.from_pretrained(FOLDER, dtype=torch.float32).eval()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_trained_model_is_that_of_transformers(kernel: str, genuine: Any) -> None:
    config = ModelConfig.from_folder(FOLDER)
    assert config.vision is not None
    processor = Qwen2VLImageProcessorPil.from_pretrained(FOLDER)
    oracle = SeeingOracle(genuine, processor, config.vision.image_id)
    run = SeeingRun(load(FOLDER, kernel), config)
    for number, words in enumerate(conversations()):
        ids = run.open(str(number), words)
        pictures = [word for word in words if not isinstance(word, int)]
        logits = run.step({str(number): len(ids)})[str(number)]
        assert (logits - oracle.logits(ids, pictures)).abs().max() <= TOLERANCE


@torch.inference_mode()
def test_each_question_of_a_lesson_is_read_as_if_it_were_alone(
    network: Network, genuine: Any
) -> None:
    """transformers reads the beginning and one question; the mask has to hide the others."""
    config = ModelConfig.from_folder(FOLDER)
    assert config.vision is not None
    batch = lesson(config.vision, wants_talk=False)
    seen = network.see(*batch.pictures[:2])
    hidden = network.read(batch.ids, batch.axes, batch.mask, batch.sight, seen)
    logits = network.head(hidden)[0]
    columns = batch.pictures.patches.shape[1] // batch.pictures.rows
    for last in ends_of_answers(batch):
        rows = batch.mask[0, last].nonzero()[:, 0]  # all that its end sees
        expected = genuine(
            input_ids=batch.ids[:1, rows],
            mm_token_type_ids=batch.sight[:1, rows].long(),
            pixel_values=batch.pictures.patches[0],
            image_grid_thw=torch.tensor([[1, batch.pictures.rows, columns]]),
        ).logits[0]
        assert (logits[rows] - expected).abs().max() <= TOLERANCE


def lesson(vision: VisionConfig, *, wants_talk: bool) -> Batch:
    """The first of one kind: several questions apart, or turns."""
    for seed in range(99):
        batch = make_batch(random.Random(seed), make_tokenizer(), vision, 1)
        if wants_talk == (batch.mask[0] == torch.ones_like(batch.mask[0]).tril()).all():
            return batch
    raise AssertionError("no such lesson")


def ends_of_answers(batch: Batch) -> list[int]:
    """The places of the tokens that end a reply."""
    end = make_tokenizer().token_to_id(TURN_END)
    before = [place for place, id in enumerate(batch.targets[0].tolist()) if id == end]
    return [place + 1 for place in before]


def test_only_answers_are_learned() -> None:
    tokenizer, vision = make_tokenizer(), ModelConfig.from_folder(FOLDER).vision
    assert vision is not None
    for wants_talk in (False, True):
        batch = lesson(vision, wants_talk=wants_talk)
        ids, targets = batch.ids[0].tolist(), batch.targets[0].tolist()
        is_inside = False
        for id, target in zip(ids, targets, strict=True):
            is_inside = (is_inside and id != tokenizer.token_to_id(TURN_END)) or (
                id == tokenizer.token_to_id(ASSISTANT)
            )
            assert is_inside == (target != NOTHING)
        learned = [place for place, target in enumerate(targets) if target != NOTHING]
        assert [ids[place + 1] for place in learned] == [targets[place] for place in learned]


def test_masks_and_cells_say_where_a_thing_is_and_what() -> None:
    """A square of the upper left quarter, in a grid of 2 x 2 cells of 8 x 8."""
    square = Thing("square", "blue", 10, 10, 20, (0, 0, 255), 0, 0)
    scene = Scene(40, 40, "black", (0, 0, 0), (square,))
    noun, colour, ground, side, part = cells_of([scene], 2, 2)[0].T.tolist()
    assert noun == [1 + NOUNS.index("square"), 0, 0, 0]
    assert colour == [1 + NAMES.index("blue"), 0, 0, 0]
    assert side == [0, 0, 0, 0]  # the left one
    assert part == [2, 0, 0, 0]  # of eight: its middle is at a quarter
    assert ground == [GROUND_NAMES.index("black")] * 4
    first, *others = masks_of([scene], 2, 2)[0].view(4, 8, 8)
    assert first[2:-2, 2:-2].min() == 1
    assert max(float(other.max()) for other in others) == 0


@pytest.mark.parametrize("shape", [(8, 8), (5, 30), (30, 5)])
def test_muon_makes_all_singular_values_nearly_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(orthogonal(matrix))
    assert 0.5 < float(values.min()) <= float(values.max()) < 1.3
