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
ENOUGH: Final = 128  # tokens behind instructions: then no question is added
CROWDED: Final = 0.8  # of pictures that are only looked at
INSTRUCTIONS: Final = ((0, 78), (5, 8), (15, 7), (150, 4), (500, 3))  # most words, how often
MOST_WORDS: Final = 500  # of instructions in a batch
SHARE_OF_TALKS: Final = 0.2
SHARE_OF_GALLERIES: Final = 0.2  # of batches of talks: some pictures at once
MOST_AT_ONCE: Final = 9
SHARE_OF_SILENCE: Final = 0.05  # of pictures: shown without a word
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


def make_pictures(
    random: random.Random, vision: VisionConfig, number: int, shared: random.Random | None = None
) -> Pictures:
    """Pictures alone, all of one size; the more they show, the more there is to learn of each.

    What decides how long a step takes comes from `shared`: a team whose members have equal ones
    does not wait for one of them.
    """
    size = _size(shared or random, vision)
    scenes = [
        _scene(random, size, vision, is_crowded=random.random() < CROWDED) for _ in range(number)
    ]
    return _drawn(random, scenes, size, vision)


def make_batch(
    random: random.Random,
    tokenizer: Tokenizer,
    vision: VisionConfig,
    num_lessons: int,
    shared: random.Random | None = None,
) -> Batch:
    """Lessons of one kind, which comes from `shared`, all of whose pictures have one size."""
    kind = shared or random
    size = _size(kind, vision)
    is_talk = kind.random() < SHARE_OF_TALKS
    (num_words,) = kind.choices(*zip(*INSTRUCTIONS, strict=True))
    most = MOST_AT_ONCE if is_talk and kind.random() < SHARE_OF_GALLERIES else 1
    fewer = max(1, min(2 * num_lessons // (most + 1), MOST_WORDS // (num_words + 1)))
    enough = ENOUGH * min(4, num_lessons // fewer)
    lessons: list[Transcript] = []
    scenes: list[Scene] = []
    for _ in range(fewer):
        lesson = Transcript(tokenizer, size)
        if num_words:
            lesson.write(SYSTEM, foreign_text(random, random.randint(1, num_words)), TURN_END)
        scenes += (
            _talk(random, lesson, vision, most)
            if is_talk
            else _apart(random, lesson, vision, enough)
        )
        lessons.append(lesson)
    drawn = scenes or [_scene(random, size, vision)]  # shown to nobody, if nobody is shown one
    return _tensors(tokenizer, lessons, _drawn(random, drawn, size, vision))


def _apart(
    random: random.Random, lesson: Transcript, vision: VisionConfig, enough: int
) -> list[Scene]:
    scene, end = _scene(random, lesson.size, vision), len(lesson.ids) + enough
    lesson.write(USER)
    lesson.show()
    start = lesson.position
    while not lesson.branch or len(lesson.ids) < end:
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
    if described and random.random() < SHARE_OF_SILENCE:
        return described._replace(text="")
    return described or ask_any(random, scene)


def _talk(
    random: random.Random, lesson: Transcript, vision: VisionConfig, most: int
) -> list[Scene]:
    """Some turns, in each up to `most` pictures; the one that is meant is the last."""
    scenes: list[Scene] = []
    has_none = random.random() < 0.2
    for _ in range(random.randint(1, 4)):
        lesson.write(USER)
        is_shown = not has_none and random.random() < (0.2 if scenes else 0.9)
        num_shown = random.randint(1, most) if is_shown else 0
        scenes += [_scene(random, lesson.size, vision) for _ in range(num_shown)]
        question = _question(random, scenes[-1] if scenes else None)
        is_behind = random.random() < 0.5
        if is_behind:
            lesson.write(question.text)
        for _ in range(num_shown):
            lesson.show()
        if not is_behind:
            lesson.write(question.text)
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
    ratio = 1.0 if random.random() < 0.5 else 2.5 ** random.uniform(-1, 1)
    return _grid(_sides(100, ratio), vision)


def _scene(
    random: random.Random, size: tuple[int, int], vision: VisionConfig, *, is_crowded: bool = False
) -> Scene:
    """One of pictures that are fitted into this grid, and mostly stretched by that."""
    rows, columns = size
    is_square = rows == columns and random.random() < 0.5
    while True:
        side = (rows * columns) ** 0.5 * random.uniform(13, random.choice((25, 60)))
        sides = _sides(side, 1.0 if is_square else columns / rows * 1.4 ** random.uniform(-1, 1))
        if _grid(sides, vision) == size:
            return random_scene(random, *sides, is_crowded=is_crowded)


def _sides(side: float, ratio: float) -> tuple[int, int]:
    """Width and height in this ratio of a picture as large as a square of this side."""
    return round(side * ratio**0.5), round(side / ratio**0.5)


def _grid(sides: tuple[int, int], vision: VisionConfig) -> tuple[int, int]:
    """Rows and columns of the tokens of a picture of this width and height."""
    width, height = fitted_size(*sides, vision.pictures)
    return height // vision.pictures.factor, width // vision.pictures.factor


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
