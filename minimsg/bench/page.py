"""`minimsg bench --html`: a report as one page that fetches nothing, with its rounds drawn.

Comparisons get a plot for each figure (`plot.py`); whatever else a report holds is shown as
tables of its keys. Knows reports as JSON, and escapes every word of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from minimsg.bench.plot import plot
from minimsg.bench.stored import Stored
from minimsg.document import document, table

STYLE: Final = """
figure { display: inline-block; margin: 0 1em 1em 0 }
.warning { background: #fff3cd; padding: .5em 1em }
"""
DRAWN: Final = ("rounds", "spreads", "ratios", "noise", "kind", "model")  # shown on their own


def page(report: Mapping[str, object]) -> str:
    """The page of any report of `minimsg bench`."""
    title = f"minimsg bench: {report.get('kind')}"
    body: list[str] = []
    if "spreads" in report:
        body += _comparison(Stored.of(report))
    for key, value in report.items():
        if key not in DRAWN:
            body += _section(key, value)
    return document(title, STYLE, body)


def _comparison(report: Stored) -> Iterator[str]:
    yield f"<p>{escape(report.title)}; tokens per second, ratios are made inside each round</p>"
    for reason in report.noise:
        yield f'<p class="warning">no verdict: {escape(reason)}</p>'
    headings = ["figure", "rounds", "ratio", "min", "max"]
    spreads = report.spreads.items()
    yield table(
        headings,
        [[k, str(len(report.rounds[k])), *_two(s.median, s.min, s.max)] for k, s in spreads],
    )
    for key, rounds in report.rounds.items():
        lines = {"minimsg": [r.ours for r in rounds], report.kind: [r.theirs for r in rounds]}
        yield f"<figure>{plot(key, lines)}</figure>"


def _section(key: str, value: object) -> Iterator[str]:
    """One key of a report as a table: a row for each item, or one of name and value."""
    items = _rows(value)
    if not items:
        return
    yield f"<h2>{escape(key.replace('_', ' '))}</h2>"
    headings = list(dict.fromkeys(name for item in items for name in item))
    yield table(headings, [[item.get(name, "") for name in headings] for item in items])


def _rows(value: object) -> list[dict[str, str]]:
    if value in (None, [], {}):
        return []
    match value:
        case [dict(), *_]:
            return [_flat(item) for item in value if isinstance(item, dict)]
        case dict() if all(isinstance(item, dict) for item in value.values()):
            return [{"of": str(name)} | _flat(item) for name, item in value.items()]
        case dict():
            return [{"name": name, "value": words} for name, words in _flat(value).items()]
        case _:
            return [{"value": _words(value)}]


def _flat(item: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Nested keys joined, values as words."""
    cells: dict[str, str] = {}
    for key, value in item.items():
        name = f"{prefix}{key}".replace("_", " ")
        cells |= _flat(value, f"{name} ") if isinstance(value, dict) else {name: _words(value)}
    return cells


def _words(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _two(*numbers: float) -> list[str]:
    return [f"{number:.2f}" for number in numbers]
