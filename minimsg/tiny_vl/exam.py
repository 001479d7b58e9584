"""Pictures and questions that no training saw, and how many of them are answered to the letter.

Whoever answers them to the letter has read the picture: the tests send them through the server.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, NamedTuple

from PIL.Image import Image

from minimsg.tiny_vl.drawing import draw, with_noise
from minimsg.tiny_vl.questions import KINDS, Question, ask
from minimsg.tiny_vl.scenes import Scene, random_scene

SEED: Final = 1_000_003  # training has small ones
ABSENT: Final = 0.3  # of questions about what is not there


class Item(NamedTuple):
    """A picture in the size in which it was drawn, and one question about it."""

    picture: Image
    question: Question


def ask_clear(random: random.Random, scene: Scene, kind: str) -> Question | None:
    """A question of this kind with a clear answer, if there is one; seldom about what is absent."""
    question = ask(random, scene, kind)
    share = 1.0 if question is None or question.is_plain else ABSENT * question.is_clear
    return question if random.random() < share else None


def exam(num_items: int, seed: int = SEED) -> Iterator[Item]:
    """Each kind of question in turn, all clear; sides of about 50 to 520 pixels, half are noisy."""
    source = random.Random(seed)
    for number in range(num_items):
        side, ratio = source.uniform(64, 400), 3 ** source.uniform(-0.5, 0.5)
        width, height = round(side * ratio**0.5), round(side / ratio**0.5)
        question = None
        while question is None:
            scene = random_scene(source, width, height)
            question = ask_clear(source, scene, KINDS[number % len(KINDS)])
        picture = draw(scene)
        yield Item(with_noise(picture, source, 8) if source.random() < 0.5 else picture, question)
