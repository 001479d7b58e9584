"""What a picture may show: a few coloured shapes and digits, each in a box of its own, on a ground.

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

# Shades by name: those of CSS and of drawing libraries, and what lies between any two.
COLOURS: Final[Mapping[str, tuple[Colour, ...]]] = {
    "red": ((255, 0, 0), (220, 20, 60), (180, 20, 20), (244, 67, 54), (214, 39, 40)),
    "orange": ((255, 165, 0), (255, 140, 0), (245, 120, 25), (255, 127, 14)),
    "yellow": ((255, 255, 0), (255, 215, 0), (245, 235, 100), (255, 235, 59)),
    "green": ((0, 128, 0), (0, 255, 0), (76, 175, 80), (44, 160, 44), (34, 110, 34)),
    "blue": ((0, 0, 255), (30, 144, 255), (25, 40, 150), (65, 105, 225), (31, 119, 180)),
    "purple": ((128, 0, 128), (160, 32, 240), (102, 51, 153), (148, 103, 189), (156, 39, 176)),
    "pink": ((255, 192, 203), (255, 105, 180), (255, 20, 147), (227, 119, 194)),
}
GROUNDS: Final[Mapping[str, tuple[Colour, ...]]] = {
    "black": ((0, 0, 0), (35, 35, 38)),
    "white": ((255, 255, 255), (240, 240, 238)),
    "grey": ((128, 128, 128), (205, 205, 205), (95, 95, 98), (180, 180, 180)),
}
SHAPES: Final = ("circle", "square", "triangle", "star", "cross")
DIGITS: Final = tuple("0123456789")
ONE, FEW, CROWD = (0.25, 0.9), (0.25, 0.48), (0.23, 0.36)  # sizes, by the picture's
STYLES: Final = 4
ALIKE: Final = 0.25  # of scenes whose things have one noun, one colour, or both

_NUMBERS: Final = (0, 1, 2, 3, 4)  # of things, and how often there are so many
_WEIGHTS: Final = (3, 25, 34, 24, 14)
_CROWDS: Final = (4, 5, 6, 7, 8)
_GRIDS: Final = ((1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (1, 3), (2, 2), (3, 2), (3, 3))
_ON_GRID: Final = 0.35  # of scenes: things in the middles of some fields
_TRIES: Final = 40  # to find room for a thing; each time it shrinks
_SHRINK: Final = 0.985
_GAP: Final = 1.05  # between two things, as a multiple of touching


@dataclass(frozen=True)
class Thing:
    """A shape or a digit in its box; turned, its corners may stand out of it a little."""

    noun: str  # one of SHAPES or DIGITS
    colour: str
    x: float  # of its middle, in pixels
    y: float
    size: float  # of the box, in pixels
    shade: Colour
    angle: float = 0.0  # in degrees, of what is no circle and of no font
    weight: float = 0.5  # from 0, as thin as it is drawn, to 1
    style: int = 3  # below STYLES: ways to draw the same

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
    if random.random() < _ON_GRID:
        boxes = _fields(random, wanted, (smallest, largest), (width, height))
    while len(boxes) < wanted:
        if (box := _box(random, (smallest, largest), (width, height), boxes)) is None:
            break
        boxes.append(box)
    nouns, colours = _nouns_and_colours(random)
    things = tuple(_random_thing(random, box, nouns, colours) for box in sorted(boxes))
    ground = random.choice(list(GROUNDS))
    return Scene(width, height, ground, _shade(random, GROUNDS[ground]), things)


Box = tuple[float, float, float]  # x, y, size


def _fields(
    random: random.Random, wanted: int, sizes: tuple[float, float], picture: tuple[int, int]
) -> list[Box]:
    """Up to `wanted` boxes of one size on a grid, if there is one with so large fields."""
    columns, rows = random.choice(_GRIDS)
    width, height = picture[0] / columns, picture[1] / rows
    largest = min(sizes[1], min(width, height) / _GAP)
    if largest < sizes[0]:
        return []
    size = random.uniform(sizes[0], largest)
    fields = [(column, row) for column in range(columns) for row in range(rows)]
    chosen = random.sample(fields, min(wanted, len(fields)))
    return [((column + 0.5) * width, (row + 0.5) * height, size) for column, row in chosen]


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


def _nouns_and_colours(random: random.Random) -> tuple[Sequence[str], Sequence[str]]:
    """What the things of a scene are chosen from: in some all are alike, and so to be counted."""
    nouns: Sequence[str] = (*SHAPES, *SHAPES, *DIGITS)  # each kind as often as the other
    colours: Sequence[str] = tuple(COLOURS)
    if random.random() < ALIKE:
        which = random.randrange(3)
        nouns = nouns if which == 0 else [random.choice(nouns)]
        colours = colours if which == 1 else [random.choice(colours)]
    return nouns, colours


def _random_thing(
    random: random.Random, box: Box, nouns: Sequence[str], colours: Sequence[str]
) -> Thing:
    colour, (x, y, size) = random.choice(colours), box
    return Thing(
        noun=random.choice(nouns),
        colour=colour,
        x=x,
        y=y,
        size=size,
        shade=_shade(random, COLOURS[colour]),
        angle=random.choice((0, random.uniform(-20, 20))),
        weight=random.random(),
        style=random.randrange(STYLES),
    )


def _shade(random: random.Random, shades: Sequence[Colour]) -> Colour:
    """One of the shades, or one between two of them."""
    one, other = random.choices(shades, k=2)
    share = random.choice((0.0, random.random()))
    red, green, blue = (
        min(255, max(0, round(a + share * (b - a)) + random.randint(-6, 6)))
        for a, b in zip(one, other, strict=True)
    )
    return red, green, blue
