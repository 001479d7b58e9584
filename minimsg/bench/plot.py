"""Lines over rounds as an SVG image of some bytes, to be put into a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

WIDTH, HEIGHT, MARGIN, TOP = 300, 180, 40, 30
COLOURS: Final = ("#0b62a4", "#c0504d")  # ours, theirs


def plot(title: str, lines: Mapping[str, Sequence[float]]) -> str:
    """Each line's values over their places, on an axis from 0 to the largest of all."""
    highest = max(value for values in lines.values() for value in values)
    marks = [
        _line(name, values, highest, place) for place, (name, values) in enumerate(lines.items())
    ]
    axis = f"M{MARGIN} {TOP}V{HEIGHT - MARGIN}H{WIDTH - MARGIN}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'font-size="11"><title>{escape(title)}</title>'
        f'<text x="{MARGIN}" y="14" font-weight="bold">{escape(title)}</text>'
        f'<path d="{axis}" fill="none" stroke="#888"/>'
        f'<text x="{MARGIN - 4}" y="{TOP + 4}" text-anchor="end">{highest:.0f}</text>'
        f'<text x="{MARGIN - 4}" y="{HEIGHT - MARGIN}" text-anchor="end">0</text>'
        + "".join(marks)
        + "</svg>"
    )


def _line(name: str, values: Sequence[float], highest: float, place: int) -> str:
    colour = COLOURS[place % len(COLOURS)]
    width, height = WIDTH - 2 * MARGIN, HEIGHT - MARGIN - TOP
    step = width / max(len(values) - 1, 1)
    points = [
        (MARGIN + index * step, TOP + height * (1 - value / highest))
        for index, value in enumerate(values)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
    x, y = MARGIN + 110 * place, HEIGHT - MARGIN / 2
    return (
        f'<g fill="{colour}"><polyline points="{path}" fill="none" stroke="{colour}"/>{dots}'
        f'<text x="{x}" y="{y}">{escape(name)}</text></g>'
    )
