"""Conversations about pictures as tensors to learn from.

Most lessons show a picture and ask several questions about it *apart*: each sees the picture
and not the others, by the mask, at the positions it would have alone; so the picture costs
once and no answer gives another away. The rest are talks: turn after turn, with a second
picture, with none, with the words before the picture, with instructions nobody understands.
Only answers are learned, each token from those before it.

Knows the template's tokens and positions (`engine/places.py` says the same of the engine's).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
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
from minimsg.tiny_vl.questions import NO_PICTURE, Question, ask, ask_any
from minimsg.tiny_vl.scenes import Scene, random_scene
from minimsg.tiny_vl.strangers import foreign_text, short_stranger, stranger
from minimsg.tiny_vl.vocabulary import (
    ASSISTANT,
    IMAGE_END,
    IMAGE_PAD,
    IMAGE_START,
    SYSTEM,
    TURN_END,
    USER,
)

NOTHING: Final = -100  # a target that is not learned
NUM_APART: Final = 4  # questions on one picture
SHARE_OF_TALKS: Final = 0.2
STRANGERS_APART: Final = 0.04
STRANGERS_IN_TALKS: Final = 0.25


class Pictures(NamedTuple):
    """Pictures of one size, and what their tokens should say by themselves."""

    patches: Tensor  # (M, N, values)
    rows: int  # of patches in each picture
    cells: Tensor  # (M, tokens, 3)
    masks: Tensor  # (M, tokens, 64)


class Batch(NamedTuple):
    """What is read about the pictures, and the id that should follow each token, or NOTHING."""

    pictures: Pictures
    ids: Tensor  # (B, T)
    axes: Tensor  # (3, B, T)
    mask: Tensor  # (B, T, T) bool
    sight: Tensor  # (B, T) bool
    targets: Tensor  # (B, T)


@dataclass
class Lesson:
    """One row of a batch while it is written."""

    tokenizer: Tokenizer
    size: tuple[int, int]  # of a picture, in tokens: rows, columns
    ids: list[int] = field(default_factory=list)
    axes: list[tuple[int, int, int]] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)  # 0: every later token sees it
    is_learned: list[bool] = field(default_factory=list)
    position: int = 0  # of the next token
    branch: int = 0

    def write(self, *parts: str, is_learned: bool = False) -> None:
        """Each part is a control token, or a text between two."""
        for part in parts:
            for id in _encoded(self.tokenizer, part):
                self._put(id, (self.position,) * 3, is_learned)
                self.position += 1

    def show(self) -> None:
        """A picture, between its two control tokens."""
        self.write(IMAGE_START)
        (pad,) = _encoded(self.tokenizer, IMAGE_PAD)
        rows, columns = self.size
        for row in range(rows):
            for column in range(columns):
                place = (self.position, self.position + row, self.position + column)
                self._put(pad, place, False)
        self.position += max(rows, columns)
        self.write(IMAGE_END)

    def answer(self, text: str) -> None:
        """The end of a question, and the reply."""
        self.write(TURN_END, ASSISTANT)
        self.write(text, TURN_END, is_learned=True)

    def _put(self, id: int, place: tuple[int, int, int], is_learned: bool) -> None:
        self.ids.append(id)
        self.axes.append(place)
        self.branches.append(self.branch)
        self.is_learned.append(is_learned)


def make_pictures(random: random.Random, vision: VisionConfig, number: int) -> Pictures:
    """Pictures alone, all of one size."""
    size = _size(random, vision)
    return _drawn(random, [_scene(random, size) for _ in range(number)], size, vision)


def make_batch(
    random: random.Random, tokenizer: Tokenizer, vision: VisionConfig, num_lessons: int
) -> Batch:
    """Lessons of one kind, all of whose pictures have one size."""
    size = _size(random, vision)
    is_talk = random.random() < SHARE_OF_TALKS
    num_words = random.choice((0, 0, 0, 0, 0, 0, 0, 0, 5, 10))  # of instructions
    lessons: list[Lesson] = []
    scenes: list[Scene] = []
    for _ in range(num_lessons):
        lesson = Lesson(tokenizer, size)
        if num_words:
            lesson.write(SYSTEM, foreign_text(random, random.randint(1, num_words)), TURN_END)
        scenes += _talk(random, lesson) if is_talk else _apart(random, lesson)
        lessons.append(lesson)
    return _tensors(tokenizer, lessons, _drawn(random, scenes, size, vision))


def _apart(random: random.Random, lesson: Lesson) -> list[Scene]:
    scene = _scene(random, lesson.size)
    lesson.write(USER)
    lesson.show()
    start = lesson.position
    for branch in range(1, NUM_APART + 1):
        lesson.branch, lesson.position = branch, start
        question = _question_apart(random, scene, branch)
        lesson.write(question.text)
        lesson.answer(question.answer)
    return [scene]


def _question_apart(random: random.Random, scene: Scene, branch: int) -> Question:
    """The first asks for everything in the picture: nothing else teaches as much."""
    if random.random() < STRANGERS_APART:
        return short_stranger(random)
    described = ask(random, scene, "describe") if branch == 1 else None
    return described or ask_any(random, scene)


def _talk(random: random.Random, lesson: Lesson) -> list[Scene]:
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


def _scene(random: random.Random, size: tuple[int, int]) -> Scene:
    unit = random.uniform(14, 36)  # pixels of a token; a square is of 56 to 144
    return random_scene(random, round(size[1] * unit), round(size[0] * unit))


def _drawn(
    random: random.Random, scenes: list[Scene], size: tuple[int, int], vision: VisionConfig
) -> Pictures:
    config = vision.pictures
    height, width = size[0] * config.factor, size[1] * config.factor
    cut = []
    for scene in scenes:
        image = draw(scene)
        if random.random() < 0.3:
            image = with_noise(image, random)
        pixels = image.resize((width, height), Resampling.BICUBIC).tobytes()
        side, frames = vision.patch_size, vision.temporal_patch_size
        cut.append(patches_of(pixels, width, height, config, side, frames))
    patches = torch.from_numpy(np.stack(cut))
    return Pictures(
        patches, size[0] * vision.merge_size, cells_of(scenes, *size), masks_of(scenes, *size)
    )


@lru_cache(maxsize=1 << 14)
def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text).ids
    return ids


def _tensors(tokenizer: Tokenizer, lessons: Sequence[Lesson], pictures: Pictures) -> Batch:
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
        sight=ids == _encoded(tokenizer, IMAGE_PAD)[0],
        targets=targets,
    )
