"""A scene as a picture. Needs Pillow, with the font that comes with it, and numpy for noise."""

from __future__ import annotations

import math
import random
from functools import lru_cache
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from minimsg.tiny_vl.scenes import Colour, Scene, Thing

Points = list[tuple[float, float]]

FONT_SIZE: Final = 1.32  # of a digit that fills a box of side 1
ARM: Final = 0.17  # half the width of a cross's arms
INNER: Final = 0.42  # radius of a star's inner corners, by that of its outer ones


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
    if thing.is_digit:
        font = _font(max(6, round(FONT_SIZE * thing.size)))
        stroke = round(thing.stroke * thing.size)
        place = (thing.x, thing.y)
        canvas.text(place, thing.noun, ink, font, anchor="mm", stroke_width=stroke)
        return
    if thing.noun == "circle":
        half = thing.size / 2
        box = (thing.x - half, thing.y - half, thing.x + half, thing.y + half)
        canvas.ellipse(box, fill=ink)
        return
    corners = {"square": _square, "triangle": _triangle, "star": _star, "cross": _cross}
    turn = math.radians(thing.angle)
    cos, sin, size = math.cos(turn), math.sin(turn), thing.size
    placed = [
        (thing.x + size * (x * cos - y * sin), thing.y + size * (x * sin + y * cos))
        for x, y in corners[thing.noun]()
    ]
    canvas.polygon(placed, fill=ink)


@lru_cache(maxsize=512)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _square() -> Points:
    return [(-0.45, -0.45), (0.45, -0.45), (0.45, 0.45), (-0.45, 0.45)]


def _triangle() -> Points:
    return [(0, -0.48), (0.48, 0.42), (-0.48, 0.42)]


def _star() -> Points:
    turns = [math.pi * (corner / 5 - 0.5) for corner in range(10)]
    radii = [0.5, 0.5 * INNER] * 5
    return [(r * math.cos(t), r * math.sin(t)) for r, t in zip(radii, turns, strict=True)]


def _cross() -> Points:
    a, b = ARM, 0.48
    return [
        (-a, -b), (a, -b), (a, -a), (b, -a), (b, a), (a, a),
        (a, b), (-a, b), (-a, a), (-b, a), (-b, -a), (-a, -a),
    ]  # fmt: skip
