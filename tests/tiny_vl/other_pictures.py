"""Pictures as somebody draws them who has not read `tiny_vl/drawing.py`: with Pillow's own shapes.

Things stand in fields of a grid, in colours by their CSS names, with smooth edges or without,
some through JPEG. What is asked and answered is the language's (`tiny_vl/questions.py`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final

from PIL import Image, ImageColor, ImageDraw, ImageFont

from minimsg.tiny_vl.exam import Item, ask_clear
from minimsg.tiny_vl.questions import KINDS
from minimsg.tiny_vl.scenes import DIGITS, SHAPES, Colour, Scene, Thing

INKS: Final = {
    "red": ("red", "crimson", "firebrick"),
    "orange": ("orange", "darkorange"),
    "yellow": ("yellow", "gold"),
    "green": ("green", "lime", "limegreen", "forestgreen"),
    "blue": ("blue", "royalblue", "dodgerblue", "mediumblue"),
    "purple": ("purple", "rebeccapurple", "darkviolet"),
    "pink": ("pink", "hotpink", "deeppink"),
}
PAPERS: Final = {
    "white": ("white", "snow", "whitesmoke"),
    "grey": ("gray", "darkgray", "dimgray"),
    "black": ("black", "#101010"),
}
SIZES: Final = ((96, 96), (160, 120), (200, 200), (240, 320), (256, 256), (400, 300), (640, 480))
SMOOTH: Final = 3  # times as large before it is made smaller


def other_pictures(num_items: int, seed: int = 7) -> Iterator[Item]:
    """Each kind of question in turn, all clear."""
    source = random.Random(seed)
    for number in range(num_items):
        question = None
        while question is None:
            scene = _scene(source)
            question = ask_clear(source, scene, KINDS[number % len(KINDS)])
        picture = _drawn(scene, source.choice((1, SMOOTH)))
        yield Item(_as_jpeg(picture) if source.random() < 0.3 else picture, question)


def _scene(source: random.Random) -> Scene:
    width, height = source.choice(SIZES)
    columns, rows = source.choice(((1, 1), (2, 1), (2, 1), (2, 2), (2, 2), (3, 1)))
    fields = [(column, row) for column in range(columns) for row in range(rows)]
    things = [
        _thing(source, (column + 0.5) * width / columns, (row + 0.5) * height / rows, size)
        for column, row in sorted(source.sample(fields, source.randint(1, len(fields))))
        for size in [source.uniform(0.75, 0.9) * min(width / columns, height / rows)]
    ]
    paper = source.choice(list(PAPERS))
    return Scene(width, height, paper, _rgb(source.choice(PAPERS[paper])), tuple(things))


def _thing(source: random.Random, x: float, y: float, size: float) -> Thing:
    noun = source.choice(source.choice((SHAPES, DIGITS)))
    colour = source.choice(list(INKS))
    shade = _rgb(source.choice(INKS[colour]))
    return Thing(noun, colour, x, y, size, shade, weight=source.random())


def _rgb(name: str) -> Colour:
    red, green, blue = ImageColor.getrgb(name)[:3]
    return red, green, blue


def _drawn(scene: Scene, scale: int) -> Image.Image:
    image = Image.new("RGB", (scale * scene.width, scale * scene.height), scene.shade)
    canvas = ImageDraw.Draw(image)
    for thing in scene.things:
        paint = _PAINTERS.get(thing.noun, _digit)
        paint(canvas, thing, (scale * thing.x, scale * thing.y), scale * thing.size / 2)
    return image.resize((scene.width, scene.height), Image.Resampling.LANCZOS)


Point = tuple[float, float]


def _box(middle: Point, half: float) -> tuple[float, float, float, float]:
    x, y = middle
    return x - half, y - half, x + half, y + half


def _circle(canvas: ImageDraw.ImageDraw, thing: Thing, middle: Point, half: float) -> None:
    canvas.ellipse(_box(middle, half), fill=thing.shade)


def _square(canvas: ImageDraw.ImageDraw, thing: Thing, middle: Point, half: float) -> None:
    radius = 0.25 * half if thing.weight > 0.8 else 0
    canvas.rounded_rectangle(_box(middle, 0.9 * half), radius, thing.shade)


def _triangle(canvas: ImageDraw.ImageDraw, thing: Thing, middle: Point, half: float) -> None:
    canvas.regular_polygon((*middle, half), 3, fill=thing.shade)


def _star(canvas: ImageDraw.ImageDraw, thing: Thing, middle: Point, half: float) -> None:
    corners = []
    for number in range(10):
        turn = math.radians(36 * number - 90)
        far = half * (0.4 + 0.1 * thing.weight if number % 2 else 1)
        corners.append((middle[0] + far * math.cos(turn), middle[1] + far * math.sin(turn)))
    canvas.polygon(corners, fill=thing.shade)


def _cross(canvas: ImageDraw.ImageDraw, thing: Thing, middle: Point, half: float) -> None:
    (x, y), arm = middle, half * (0.2 + 0.15 * thing.weight)
    canvas.rectangle((x - half, y - arm, x + half, y + arm), fill=thing.shade)
    canvas.rectangle((x - arm, y - half, x + arm, y + half), fill=thing.shade)


def _digit(canvas: ImageDraw.ImageDraw, thing: Thing, middle: Point, half: float) -> None:
    font = ImageFont.load_default(round(2.4 * half))
    canvas.text(middle, thing.noun, thing.shade, font, anchor="mm")


_PAINTERS: Final[dict[str, Callable[[ImageDraw.ImageDraw, Thing, Point, float], None]]] = {
    "circle": _circle,
    "square": _square,
    "triangle": _triangle,
    "star": _star,
    "cross": _cross,
}


def _as_jpeg(picture: Image.Image) -> Image.Image:
    stream = BytesIO()
    picture.save(stream, "JPEG", quality=70)
    return Image.open(stream).convert("RGB")
