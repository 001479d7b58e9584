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
from minimsg.tiny_vl.scenes import random_scene

SEED: Final = 1_000_003  # training has small ones


class Item(NamedTuple):
    """A picture in the size in which it was drawn, and one question about it."""

    picture: Image
    question: Question


def exam(num_items: int, seed: int = SEED) -> Iterator[Item]:
    """Each kind of question in turn, all clear; pictures of 40 to 600 pixels, half are noisy."""
    source = random.Random(seed)
    for number in range(num_items):
        side, ratio = source.uniform(64, 400), 3 ** source.uniform(-0.5, 0.5)
        width, height = round(side * ratio**0.5), round(side / ratio**0.5)
        question = None
        while question is None or not question.is_clear:  # not every scene has one of every kind
            scene = random_scene(source, width, height)
            question = ask(source, scene, KINDS[number % len(KINDS)])
        picture = draw(scene)
        yield Item(with_noise(picture, source, 8) if source.random() < 0.5 else picture, question)
