"""Batches, sequences and the page map as tables, without a tensor.

The frame of a table is `minimsg/document.py`; steps are in `steps.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from minimsg.document import table
from minimsg.engine.types import Batch, Sequence

if TYPE_CHECKING:
    from minimsg.engine.page_map import PageMap

MAX_ROWS: Final = 16  # of a table; of the rest it says how many they are
MAX_CELLS: Final = 1024  # of the map, one a page
COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#aa8800", "#2299bb", "#aa3377")  # P. Tol
FREE, CACHED = "#eeeeee", "#aaaaaa"


def show_batch(batch: Batch) -> str:
    """A row for each sequence."""
    sampling = set(batch.sample_ids)
    rows = [
        (id, f"{span.start} to {span.stop - 1}", str(len(span)), str(span.stop), ranges(pages),
         "yes" if id in sampling else "no")
        for (id, span), pages in zip(batch.spans.items(), batch.page_tables, strict=True)
    ]  # fmt: skip
    headings = ("request", "positions", "tokens", "context", "pages", "samples")
    total = f"Batch of {len(rows)} sequences, {len(batch.input_ids)} tokens"
    return short_table(total, headings, rows)


def show_sequence(sequence: Sequence) -> str:
    """A fact a row."""
    request = sequence.request
    facts = {
        "prompt": f"{len(request.prompt_ids)} ids",
        "generated": f"{sequence.num_generated} of at most {request.max_tokens} ids",
        "computed": f"{sequence.num_computed} of {len(sequence.ids)} ids",
        "pages": ranges(sequence.page_table) or "none",
        "of them shared": str(sequence.num_published),
        "drafts": str(len(sequence.drafts)),
    }
    return short_table(f"Sequence {request.id}", ("fact", "value"), facts.items())


def show_pages(pages: PageMap) -> str:
    """A cell a page in the colours of the requests, and the same in words."""
    colours = {id: COLOURS[place % len(COLOURS)] for place, id in enumerate(pages.tables)}
    rows = [
        ("free", str(pages.num_free), ""),
        ("cached", str(len(pages.cached)), ranges(pages.cached)),
        *((id, str(len(held)), ranges(held)) for id, held in pages.tables.items()),
    ]
    caption = f"{pages.num_pages} pages of {pages.page_size} tokens"
    return _cells(pages, colours) + short_table(caption, ("whose", "pages", "which"), rows)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in their order, those that follow each other as one: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers if isinstance(numbers, (list, tuple)) else sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def short_table(
    caption: str,
    headings: Iterable[str],
    rows: Iterable[tuple[str, ...]],
    number: int | None = None,
) -> str:
    """A table of the first rows, with a word on how many there are in all."""
    listed = list(rows)
    number = len(listed) if number is None else number
    shown = listed if number <= MAX_ROWS + 1 else listed[:MAX_ROWS]
    if number > len(shown):
        caption = f"{caption}; the first {len(shown)} of {number}"
    return table(list(headings), shown, caption=caption)


def _cells(pages: PageMap, colours: dict[str, str]) -> str:
    """Runs of pages of one colour; the words below it say the same."""
    cached = pages.cached
    fills: Iterator[str] = (
        colours[users[0]] if users else CACHED if page in cached else FREE
        for page, users in enumerate(pages.users[:MAX_CELLS])
    )
    runs = ((fill, sum(1 for _ in run)) for fill, run in groupby(fills))
    spans = "".join(
        f'<span style="display:inline-block;height:1em;width:{count * 0.4:.1f}em;'
        f'background:{fill}"></span>'
        for fill, count in runs
    )
    return f'<div aria-hidden="true" style="line-height:1">{spans}</div>\n'
