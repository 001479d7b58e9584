"""A scene as a picture. Needs Pillow, with the font that comes with it, and numpy for noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from minimsg.tiny_vl.digits import STROKES, Points
from minimsg.tiny_vl.scenes import Colour, Scene, Thing

FONT_SIZE: Final = 1.32  # of a digit that fills a box of side 1


def draw(scene: Scene) -> Image.Image:
    """The picture of a scene, in mode RGB."""
    image = Image.new("RGB", (scene.width, scene.height), scene.shade)
    canvas = ImageDraw.Draw(image)
    for thing in scene.things:
        _draw_thing(canvas, thing, thing.shade)
    return image


def draw_mask(scene: Scene) -> Image.Image:
    """White where the things are, black elsewhere, in mode L."""
    image = Image.new("L", (scene.width, scene.height))
    canvas = ImageDraw.Draw(image)
    for thing in scene.things:
        _draw_thing(canvas, thing, 255)
    return image


def with_noise(image: Image.Image, random: random.Random, most: int = 16) -> Image.Image:
    """Each value moved by up to `most`, as a camera or a JPEG might."""
    values = np.asarray(image).astype(np.int16)
    noise = np.random.default_rng(random.getrandbits(32)).integers(-most, most + 1, values.shape)
    return Image.fromarray((values + noise).clip(0, 255).astype(np.uint8))


def _draw_thing(canvas: ImageDraw.ImageDraw, thing: Thing, ink: Colour | int) -> None:
    if thing.noun == "circle":
        half = 0.48 * thing.size
        box = (thing.x - half, thing.y - half, thing.x + half, thing.y + half)
        canvas.ellipse(box, fill=ink)
    elif thing.noun in _CORNERS:
        canvas.polygon(_placed(thing, _CORNERS[thing.noun](thing)), fill=ink)
    elif thing.style < 2:
        font = _font(max(6, round(FONT_SIZE * thing.size)))
        stroke = round(0.05 * thing.weight * thing.size)
        place = (thing.x, thing.y)
        canvas.text(place, thing.noun, ink, font, anchor="mm", stroke_width=stroke)
    else:
        width = (0.08 + 0.1 * thing.weight) * thing.size
        for stroke_points in STROKES[thing.noun][thing.style % 2]:
            _draw_stroke(canvas, _placed(thing, stroke_points), width, ink)


def _draw_stroke(
    canvas: ImageDraw.ImageDraw, points: Points, width: float, ink: Colour | int
) -> None:
    """A line with round ends and corners."""
    canvas.line(points, ink, max(1, round(width)))
    for x, y in points:
        canvas.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=ink)


def _placed(thing: Thing, points: Points) -> Points:
    """Points of a box of side 1, in the picture."""
    turn = math.radians(thing.angle)
    cos, sin, size = math.cos(turn), math.sin(turn), thing.size
    return [
        (thing.x + size * (x * cos - y * sin), thing.y + size * (x * sin + y * cos))
        for x, y in points
    ]


@lru_cache(maxsize=512)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _square(thing: Thing) -> Points:
    """With sharp corners, or with some taken off."""
    a, cut = 0.38 + 0.09 * thing.weight, 0.07 if thing.style == 0 else 0.0
    quarter = [(a, -a + cut), (a, a - cut)]
    return [
        (x * cos - y * sin, x * sin + y * cos)
        for cos, sin in ((1, 0), (0, 1), (-1, 0), (0, -1))
        for x, y in quarter
    ]


def _triangle(thing: Thing) -> Points:
    """Of equal sides, or higher or lower than that; some are right-angled or upside down."""
    half = 0.33 + 0.15 * thing.weight
    if thing.style == 0:
        return [(-0.45, -half), (-0.45, half), (0.45, half)]
    if thing.style == 1:
        half = -half
    return [(0, -half), (0.48, half), (-0.48, half)]


def _star(thing: Thing) -> Points:
    turns = [math.pi * (corner / 5 - 0.5) for corner in range(10)]
    radii = [0.5, 0.5 * (0.35 + 0.15 * thing.weight)] * 5
    return [(r * math.cos(t), r * math.sin(t)) for r, t in zip(radii, turns, strict=True)]


def _cross(thing: Thing) -> Points:
    """Upright; at times it lies as an X does."""
    a, b = 0.055 + 0.125 * thing.weight, 0.48
    corners = [
        (a, -b), (a, -a), (b, -a), (b, a), (a, a), (a, b),
        (-a, b), (-a, a), (-b, a), (-b, -a), (-a, -a), (-a, -b),
    ]  # fmt: skip
    if thing.style:
        return corners
    half = math.sqrt(0.5)
    return [(half * (x - y), half * (x + y)) for x, y in corners]


_CORNERS: Final[dict[str, Callable[[Thing], Points]]] = {
    "square": _square,
    "triangle": _triangle,
    "star": _star,
    "cross": _cross,
}
