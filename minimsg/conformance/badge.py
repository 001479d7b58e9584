"""A badge: what share of the rules that were looked at holds, as an SVG that fetches nothing."""

from __future__ import annotations

from typing import Final

from minimsg.conformance.case import Level
from minimsg.conformance.verdict import Run, Verdict

COLOURS: Final = {"good": "#2ea44f", "fair": "#c69026", "bad": "#cf222e"}
CHARACTER_PX: Final = 7
PADDING_PX: Final = 12


def badge(run: Run) -> str:
    """The badge of a run: rules of level MUST and SHOULD only."""
    rules = [r for r in run.results if r.level in (Level.MUST, Level.SHOULD)]
    passed = sum(result.verdict == Verdict.PASS for result in rules)
    failed = [r for r in rules if r.verdict in (Verdict.FAIL, Verdict.EXPECTED, Verdict.STALE)]
    colour = "good"
    if failed:
        colour = "bad" if any(result.level == Level.MUST for result in failed) else "fair"
    return _svg("messages api", f"{passed}/{passed + len(failed)} {run.profile}", COLOURS[colour])


def _svg(left: str, right: str, colour: str) -> str:
    one, two = (len(text) * CHARACTER_PX + PADDING_PX for text in (left, right))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{one + two}" height="20" role="img">
<title>{left}: {right}</title>
<rect width="{one}" height="20" fill="#444"/>
<rect x="{one}" width="{two}" height="20" fill="{colour}"/>
<g fill="#fff" font-family="Verdana, sans-serif" font-size="11" text-anchor="middle">
<text x="{one / 2:g}" y="14">{left}</text>
<text x="{one + two / 2:g}" y="14">{right}</text>
</g>
</svg>
"""
