"""What a picture may show: a few coloured shapes and digits that do not touch, on a ground.

A scene is facts only, so what is true of it needs no picture; `drawing.py` draws it and
`questions.py` asks about it. Everything random comes from the generator that is passed in:
the same seed gives the same scenes on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    "black": ((0, 0, 0), (20, 20, 20), (30, 30, 35)),
    "white": ((255, 255, 255), (250, 250, 250), (240, 240, 240)),
    "grey": ((128, 128, 128), (160, 160, 160), (100, 100, 100)),
}
SHAPES: Final = ("circle", "square", "triangle", "star", "cross")
DIGITS: Final = tuple("0123456789")
MAX_THINGS: Final = 5

_NUMBERS: Final = (0, 1, 2, 3, 4, 5)  # of things, and how often there are so many
_WEIGHTS: Final = (4, 40, 26, 14, 9, 7)
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


def random_scene(random: random.Random, width: int, height: int) -> Scene:
    """Up to five things, each in another colour than the ground."""
    ground = random.choice(list(COLOURS))
    (wanted,) = random.choices(_NUMBERS, _WEIGHTS)
    things: list[Thing] = []
    for _ in range(wanted):
        thing = _random_thing(random, width, height, wanted, ground)
        for _ in range(_TRIES):
            if all(_are_apart(thing, other) for other in things):
                things.append(thing)
                break
            thing = _moved(random, thing, width, height)
    things.sort(key=lambda thing: thing.x)
    return Scene(width, height, ground, _shade(random, ground), tuple(things))


def _random_thing(
    random: random.Random, width: int, height: int, wanted: int, ground: str
) -> Thing:
    is_digit = random.random() < (0.5 if wanted == 1 else 0.35)
    colour = random.choice([name for name in COLOURS if name != ground])
    side = (width * height) ** 0.5
    size = random.uniform(0.26, 0.9 if wanted == 1 else 0.4) * side
    thing = Thing(
        noun=random.choice(DIGITS if is_digit else SHAPES),
        colour=colour,
        x=0,
        y=0,
        size=min(size, 0.96 * min(width, height)),
        shade=_shade(random, colour),
        angle=random.choice((0, random.uniform(-15, 15))),
        stroke=random.choice((0, random.uniform(0, 0.06))),
    )
    return _moved(random, thing, width, height)


def _moved(random: random.Random, thing: Thing, width: int, height: int) -> Thing:
    """The same somewhere else, and a little smaller."""
    size = max(_SHRINK * thing.size, 0.24 * (width * height) ** 0.5)
    size = min(size, 0.96 * min(width, height))
    x = random.uniform(size / 2, width - size / 2)
    y = random.uniform(size / 2, height - size / 2)
    return replace(thing, x=x, y=y, size=size)


def _are_apart(one: Thing, other: Thing) -> bool:
    distance = max(abs(one.x - other.x), abs(one.y - other.y))
    return distance > _GAP * (one.size + other.size) / 2


def _shade(random: random.Random, colour: str) -> Colour:
    red, green, blue = (
        min(255, max(0, value + random.randint(-8, 8))) for value in random.choice(COLOURS[colour])
    )
    return red, green, blue
