"""What a picture may show: a few coloured shapes and digits that do not touch, on a ground.

A scene is facts only, so what is true of it needs no picture; `drawing.py` draws it and
`questions.py` asks about it. Everything random comes from the generator that is passed in:
the same seed gives the same scenes on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Colour = tuple[int, int, int]

# Shades by name: those of CSS, which everybody draws with, and some more.
COLOURS: Final[Mapping[str, tuple[Colour, ...]]] = {
    "red": ((255, 0, 0), (220, 20, 60), (190, 25, 25)),
    "orange": ((255, 165, 0), (255, 140, 0), (245, 130, 30)),
    "yellow": ((255, 255, 0), (255, 225, 25), (245, 235, 90)),
    "green": ((0, 128, 0), (0, 255, 0), (50, 180, 75)),
    "blue": ((0, 0, 255), (30, 144, 255), (35, 70, 190)),
    "purple": ((128, 0, 128), (148, 50, 210), (110, 40, 150)),
    "pink": ((255, 192, 203), (255, 105, 180), (250, 150, 190)),
}
GROUNDS: Final[Mapping[str, tuple[Colour, ...]]] = {
    "black": ((0, 0, 0), (20, 20, 20), (30, 30, 35)),
    "white": ((255, 255, 255), (250, 250, 250), (240, 240, 240)),
    "grey": ((128, 128, 128), (160, 160, 160), (100, 100, 100)),
}
SHAPES: Final = ("circle", "square", "triangle", "star", "cross")
DIGITS: Final = tuple("0123456789")
ONE, FEW, CROWD = (0.28, 0.65), (0.28, 0.42), (0.24, 0.36)  # sizes, by the picture's

_NUMBERS: Final = (0, 1, 2, 3, 4)  # of things, and how often there are so many
_WEIGHTS: Final = (3, 25, 34, 24, 14)
_CROWDS: Final = (4, 5, 6, 7, 8)
_TRIES: Final = 40  # to find room for a thing; each time it shrinks
_SHRINK: Final = 0.985
_GAP: Final = 1.08  # between two things, as a multiple of touching


@dataclass(frozen=True)
class Thing:
    """A shape or a digit in its box."""

    noun: str  # one of SHAPES or DIGITS
    colour: str
    x: float  # of its middle, in pixels
    y: float
    size: float  # of the box, in pixels
    shade: Colour
    angle: float  # of a shape, in degrees
    stroke: float  # that makes a digit bolder, by its size

    @property
    def is_digit(self) -> bool:
        return self.noun in DIGITS


@dataclass(frozen=True)
class Scene:
    """A ground with things on it, from left to right. Invariant: no two boxes touch."""

    width: int  # in pixels
    height: int
    ground: str
    shade: Colour
    things: tuple[Thing, ...]


def random_scene(
    random: random.Random, width: int, height: int, *, is_crowded: bool = False
) -> Scene:
    """Up to four things, coloured, on white, grey or black; in a crowd more, and smaller ones."""
    (wanted,) = random.choices(_NUMBERS, _WEIGHTS)
    sizes = ONE if wanted == 1 else FEW
    if is_crowded:
        wanted, sizes = random.choice(_CROWDS), CROWD
    side = (width * height) ** 0.5
    smallest, largest = (min(share * side, 0.96 * min(width, height)) for share in sizes)
    boxes: list[Box] = []
    for _ in range(wanted):
        box = _box(random, (smallest, largest), (width, height), boxes)
        boxes += [box] if box else []
    things = tuple(_random_thing(random, box) for box in sorted(boxes))
    ground = random.choice(list(GROUNDS))
    return Scene(width, height, ground, _shade(random, GROUNDS[ground]), things)


Box = tuple[float, float, float]  # x, y, size


def _box(
    random: random.Random, sizes: tuple[float, float], picture: tuple[int, int], boxes: list[Box]
) -> Box | None:
    """Room for a thing beside the others; None if none was found."""
    size = random.uniform(*sizes)
    for _ in range(_TRIES):
        x, y = (random.uniform(size / 2, side - size / 2) for side in picture)
        for other_x, other_y, other_size in boxes:
            gap = _GAP * (size + other_size) / 2
            if abs(x - other_x) < gap and abs(y - other_y) < gap:
                break
        else:
            return x, y, size
        size = max(sizes[0], _SHRINK * size)
    return None


def _random_thing(random: random.Random, box: Box) -> Thing:
    colour, (x, y, size) = random.choice(list(COLOURS)), box
    return Thing(
        noun=random.choice(DIGITS if random.random() < 0.5 else SHAPES),
        colour=colour,
        x=x,
        y=y,
        size=size,
        shade=_shade(random, COLOURS[colour]),
        angle=random.choice((0, random.uniform(-15, 15))),
        stroke=random.uniform(0.01, 0.05),
    )


def _shade(random: random.Random, shades: Sequence[Colour]) -> Colour:
    red, green, blue = (
        min(255, max(0, value + random.randint(-8, 8))) for value in random.choice(shades)
    )
    return red, green, blue
