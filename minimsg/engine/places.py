"""Where the tokens of a sequence with pictures stand: rotary positions of three axes.

Text goes on by one a token, all axes alike. The parts of a picture have the time at which
it begins, and its rows and columns counted from there; what follows goes on behind the
longer of its sides, so later positions lag behind places (arXiv 2409.12191 section 2.1).
Knows numbers only. Used by `batch.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from minimsg.engine.types import ImageSpan

Axes = tuple[list[int], list[int], list[int]]  # time, row, column


def axes_of(images: Iterable[ImageSpan], start: int, stop: int) -> Axes:
    """The rotary positions of ids `start` to `stop` of a sequence with these images, in order."""
    axes: Axes = ([], [], [])
    place, lead = start, 0  # lead: how far positions are ahead of places; never above 0
    for image in images:
        if image.start >= stop:
            break
        _text(axes, place, image.start, lead)
        origin = image.start + lead
        for index in range(max(place, image.start), min(stop, image.stop)):
            row, column = divmod(index - image.start, image.columns)
            for axis, position in zip(axes, (0, row, column), strict=True):
                axis.append(origin + position)
        place = max(place, image.stop)
        lead += max(image.rows, image.columns) - (image.stop - image.start)
    _text(axes, place, stop, lead)
    return axes


def _text(axes: Axes, start: int, stop: int, lead: int) -> None:
    for axis in axes:
        axis.extend(range(start + lead, stop + lead))
