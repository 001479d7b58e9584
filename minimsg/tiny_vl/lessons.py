"""Conversations about pictures as tensors to learn from.

Most lessons show a picture and ask several questions about it *apart*: each sees the picture
and not the others, by the mask, at the positions it would have alone; so the picture costs
once and no answer gives another away. The rest are talks: turn after turn, with a second
picture, with none, with the words before the picture, with instructions nobody understands.
Only answers are learned, each token from those before it. Next: `transcript.py`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from PIL.Image import Resampling
from tokenizers import Tokenizer
from torch import Tensor

from minimsg.models.pixels import fitted_size, patches_of
from minimsg.models.vision_config import VisionConfig
from minimsg.tiny_vl.cells import cells_of, masks_of
from minimsg.tiny_vl.drawing import draw, with_noise
from minimsg.tiny_vl.questions import Question, ask, ask_any
from minimsg.tiny_vl.scenes import Scene, random_scene
from minimsg.tiny_vl.strangers import foreign_text, short_stranger, stranger
from minimsg.tiny_vl.transcript import Transcript, encoded
from minimsg.tiny_vl.vocabulary import IMAGE_PAD, SYSTEM, TURN_END, USER
from minimsg.tiny_vl.wording import NO_PICTURE

NOTHING: Final = -100  # a target that is not learned
ENOUGH: Final = 128  # tokens of a lesson: then no question is added
CROWDED: Final = 0.8  # of pictures that are only looked at
INSTRUCTIONS: Final = ((0, 80), (5, 10), (12, 7), (120, 3))  # how many words how often
MOST_WORDS: Final = 500  # of instructions in a batch
SHARE_OF_TALKS: Final = 0.2
STRANGERS_APART: Final = 0.04
STRANGERS_IN_TALKS: Final = 0.25


class Pictures(NamedTuple):
    """Pictures of one size, and what their tokens should say by themselves."""

    patches: Tensor  # (M, N, values)
    rows: int  # of patches in each picture
    cells: Tensor  # (M, tokens, 5)
    masks: Tensor  # (M, tokens, 64)


class Batch(NamedTuple):
    """What is read about the pictures, and the id that should follow each token, or NOTHING."""

    pictures: Pictures
    ids: Tensor  # (B, T)
    axes: Tensor  # (3, B, T)
    mask: Tensor  # (B, T, T) bool
    sight: Tensor  # (B, T) bool
    targets: Tensor  # (B, T)


def make_pictures(random: random.Random, vision: VisionConfig, number: int) -> Pictures:
    """Pictures alone, all of one size; the more they show, the more there is to learn of each."""
    size = _size(random, vision)
    scenes = [_scene(random, size, is_crowded=random.random() < CROWDED) for _ in range(number)]
    return _drawn(random, scenes, size, vision)


def make_batch(
    random: random.Random, tokenizer: Tokenizer, vision: VisionConfig, num_lessons: int
) -> Batch:
    """Lessons of one kind, all of whose pictures have one size."""
    size = _size(random, vision)
    is_talk = random.random() < SHARE_OF_TALKS
    (num_words,) = random.choices(*zip(*INSTRUCTIONS, strict=True))
    num_lessons = max(1, min(num_lessons, MOST_WORDS // (num_words + 1)))
    lessons: list[Transcript] = []
    scenes: list[Scene] = []
    for _ in range(num_lessons):
        lesson = Transcript(tokenizer, size)
        if num_words:
            lesson.write(SYSTEM, foreign_text(random, random.randint(1, num_words)), TURN_END)
        scenes += _talk(random, lesson) if is_talk else _apart(random, lesson)
        lessons.append(lesson)
    drawn = scenes or [_scene(random, size)]  # shown to nobody, if nobody is shown one
    return _tensors(tokenizer, lessons, _drawn(random, drawn, size, vision))


def _apart(random: random.Random, lesson: Transcript) -> list[Scene]:
    scene = _scene(random, lesson.size)
    lesson.write(USER)
    lesson.show()
    start = lesson.position
    while not lesson.branch or len(lesson.ids) < ENOUGH:
        lesson.branch, lesson.position = lesson.branch + 1, start
        question = _question_apart(random, scene, is_first=lesson.branch == 1)
        lesson.write(question.text)
        lesson.answer(question.answer)
    return [scene]


def _question_apart(random: random.Random, scene: Scene, *, is_first: bool) -> Question:
    """The first asks for everything in the picture: nothing else teaches as much."""
    if random.random() < STRANGERS_APART:
        return short_stranger(random)
    described = ask(random, scene, "describe") if is_first else None
    return described or ask_any(random, scene)


def _talk(random: random.Random, lesson: Transcript) -> list[Scene]:
    """Some turns; the picture that is meant is the last one."""
    scenes: list[Scene] = []
    has_none = random.random() < 0.2
    for _ in range(random.randint(1, 4)):
        lesson.write(USER)
        is_shown = not has_none and random.random() < (0.2 if scenes else 0.9)
        if is_shown:
            scenes.append(_scene(random, lesson.size))
        question = _question(random, scenes[-1] if scenes else None)
        is_behind = random.random() < 0.5
        if is_shown and not is_behind:
            lesson.show()
        lesson.write(question.text)
        if is_shown and is_behind:
            lesson.show()
        lesson.answer(question.answer)
    return scenes


def _question(random: random.Random, scene: Scene | None) -> Question:
    if random.random() < STRANGERS_IN_TALKS:
        return stranger(random)
    if scene is not None:
        return ask_any(random, scene)
    question = ask_any(random, random_scene(random, 64, 64))
    return question._replace(kind="blind", answer=NO_PICTURE)


def _size(random: random.Random, vision: VisionConfig) -> tuple[int, int]:
    """Rows and columns of tokens of a picture; half of them are squares."""
    ratio = 1.0 if random.random() < 0.5 else 3 ** random.uniform(-0.5, 0.5)
    width, height = fitted_size(round(100 * ratio), round(100 / ratio), vision.pictures)
    return height // vision.pictures.factor, width // vision.pictures.factor


def _scene(random: random.Random, size: tuple[int, int], *, is_crowded: bool = False) -> Scene:
    unit = random.choice((random.uniform(13, 25), random.uniform(13, 60)))  # pixels of a token
    width, height = round(size[1] * unit), round(size[0] * unit)
    return random_scene(random, width, height, is_crowded=is_crowded)


def _drawn(
    random: random.Random, scenes: list[Scene], size: tuple[int, int], vision: VisionConfig
) -> Pictures:
    config = vision.pictures
    height, width = size[0] * config.factor, size[1] * config.factor
    cut = []
    for scene in scenes:
        image = draw(scene)
        if random.random() < 0.2:
            image = with_noise(image, random)
        pixels = image.resize((width, height), Resampling.BICUBIC).tobytes()
        side, frames = vision.patch_size, vision.temporal_patch_size
        cut.append(patches_of(pixels, width, height, config, side, frames))
    patches = torch.from_numpy(np.stack(cut))
    return Pictures(
        patches, size[0] * vision.merge_size, cells_of(scenes, *size), masks_of(scenes, *size)
    )


def _tensors(tokenizer: Tokenizer, lessons: Sequence[Transcript], pictures: Pictures) -> Batch:
    longest = max(len(lesson.ids) for lesson in lessons)

    def padded(values: Sequence[Sequence[int]]) -> Tensor:
        table = np.zeros((len(values), longest), np.int64)
        for row, line in zip(table, values, strict=True):
            row[: len(line)] = line
        return torch.from_numpy(table)

    ids = padded([lesson.ids for lesson in lessons])
    axes = [padded([[a[n] for a in lesson.axes] for lesson in lessons]) for n in range(3)]
    branches = padded([lesson.branches for lesson in lessons])
    is_learned = padded([lesson.is_learned for lesson in lessons]).bool()
    before, itself = branches[:, None, :], branches[:, :, None]
    causal = torch.ones(longest, longest, dtype=torch.bool).tril()
    targets = torch.full_like(ids, NOTHING)
    targets[:, :-1] = ids[:, 1:].where(is_learned[:, 1:], NOTHING)
    return Batch(
        pictures=pictures,
        ids=ids,
        axes=torch.stack(axes),
        mask=causal & ((before == 0) | (before == itself)),
        sight=ids == encoded(tokenizer, IMAGE_PAD)[0],
        targets=targets,
    )
