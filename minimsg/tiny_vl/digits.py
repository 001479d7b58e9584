"""Digits as strokes of a pen, in two ways of writing each: the one font that ships is not enough.

Points lie in a box of side 1 around the middle, y goes down. What draws them is `drawing.py`.
"""

from __future__ import annotations

import math
from typing import Final

Points = list[tuple[float, float]]


def _arc(x: float, y: float, width: float, height: float, start: float, stop: float) -> Points:
    """Of an ellipse around x, y; in degrees, 0 is right and 90 is down."""
    turns = [math.radians(start + (stop - start) * part / 12) for part in range(13)]
    return [(x + width * math.cos(turn), y + height * math.sin(turn)) for turn in turns]


_TOP, _FOOT = -0.46, 0.46
_ONE: Final[Points] = [(-0.17, -0.29), (0.03, _TOP), (0.03, _FOOT)]
_SEVEN: Final[Points] = [(-0.27, _TOP), (0.27, _TOP), (-0.07, _FOOT)]
_LOOP: Final = _arc(0, 0.17, 0.26, 0.29, 0, 360)
_SIX: Final = (_LOOP, [*_arc(0.02, 0.1, 0.28, 0.56, 180, 265), (0.15, -0.45)])
_NINE: Final = tuple([(-x, -y) for x, y in stroke] for stroke in _SIX)

STROKES: Final[dict[str, tuple[tuple[Points, ...], tuple[Points, ...]]]] = {
    "0": (
        (_arc(0, 0, 0.27, 0.46, 0, 360),),
        (_arc(0, 0, 0.26, 0.46, 0, 360), [(-0.07, 0.14), (0.07, -0.14)]),
    ),
    "1": ((_ONE,), (_ONE, [(-0.18, _FOOT), (0.24, _FOOT)])),
    "2": (
        ([*_arc(0, -0.2, 0.25, 0.26, 190, 390), (-0.27, _FOOT), (0.27, _FOOT)],),
        ([*_arc(0, -0.22, 0.27, 0.24, 200, 420), (-0.25, _FOOT), (0.28, _FOOT)],),
    ),
    "3": (
        (_arc(-0.02, -0.23, 0.23, 0.23, -150, 95), _arc(-0.02, 0.22, 0.27, 0.25, -95, 155)),
        ([(-0.24, _TOP), (0.22, _TOP), (-0.05, -0.1), *_arc(-0.02, 0.18, 0.27, 0.28, -90, 155)],),
    ),
    "4": (
        ([(0.12, _FOOT), (0.12, _TOP), (-0.28, 0.18), (0.28, 0.18)],),
        ([(-0.2, _TOP), (-0.24, 0.08), (0.26, 0.08)], [(0.12, -0.2), (0.12, _FOOT)]),
    ),
    "5": (
        ([(0.24, _TOP), (-0.2, _TOP), (-0.23, -0.02), *_arc(-0.01, 0.16, 0.27, 0.3, -130, 150)],),
        ([(0.22, _TOP), (-0.19, _TOP), (-0.19, -0.1), *_arc(-0.03, 0.18, 0.28, 0.28, -90, 140)],),
    ),
    "6": (_SIX, (_LOOP, [(-0.25, 0.12), (0.1, _TOP)])),
    "7": ((_SEVEN,), (_SEVEN, [(-0.14, 0.02), (0.2, 0.02)])),
    "8": (
        (_arc(0, -0.24, 0.21, 0.22, 0, 360), _arc(0, 0.22, 0.26, 0.24, 0, 360)),
        (_arc(0, -0.23, 0.23, 0.23, 0, 360), _arc(0, 0.23, 0.23, 0.23, 0, 360)),
    ),
    "9": (_NINE, (_NINE[0], [(0.25, -0.12), (0.25, _FOOT)])),
}
