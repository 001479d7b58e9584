"""Two engines side by side as a table: where they differ most in each layer, and what they say."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from minimsg.document import table

if TYPE_CHECKING:
    from minimsg.engine.compare import Comparison


def show_comparison(comparison: Comparison) -> str:
    """A row for each layer, and one for the points that are in none."""
    rows = [
        ("none" if each.layer is None else str(each.layer), each.point, f"{each.absolute:.2e}",
         f"{each.relative:.2e}")
        for each in comparison.worst()
    ]  # fmt: skip
    first, second = comparison.names
    caption = f"{first} beside {second}: the largest difference of each layer"
    headings = ("layer", "point", "absolute", "of the largest value")
    words = "".join(f"<p>{escape(line)}</p>\n" for line in _words(comparison))
    return f"<div>{table(headings, rows, caption=caption)}\n{words}</div>"


def _words(comparison: Comparison) -> list[str]:
    found, place = comparison.first(), comparison.first_token
    where = "All values are the same." if found is None else f"They first differ at {found.point}."
    if place is None:
        return [where, "Both say the same."]
    ours, other = (reply[place] for reply in comparison.replies)
    return [where, f"Token {place + 1} of the reply differs: {ours} and {other}."]
