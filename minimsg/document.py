"""An HTML document in one file that fetches nothing: its frame, its tables, how both look.

Headings and cells are escaped here, the rest of the body by whoever writes it. The pages
themselves are `bench/page.py` and `conformance/page.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em;
  color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
"""


def document(title: str, style: str, body: Iterable[str]) -> str:
    """The whole of it; `style` comes after what all documents have."""
    lines = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>",
        f"<h1>{escape(title)}</h1>",
        *body,
        "</html>\n",
    )
    return "\n".join(lines)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    colours: Mapping[str, str] | None = None,
    caption: str = "",
) -> str:
    """A row for each of `rows`; a cell that is a key of `colours` is of that colour."""
    colours = colours or {}
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = ("".join(_cell(cell, colours.get(cell)) for cell in row) for row in rows)
    lines = "\n".join(f"<tr>{row}</tr>" for row in body)
    said = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    return f"<table>\n{said}<tr>{head}</tr>\n{lines}\n</table>"


def _cell(text: str, colour: str | None) -> str:
    style = f' style="color: {colour}"' if colour else ""
    return f"<td{style}>{escape(text)}</td>"
