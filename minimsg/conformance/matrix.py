"""Reports side by side: cases down, servers across. Knows verdicts only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from minimsg.conformance.verdict import Run, Verdict

MARKS: Final = {
    Verdict.PASS: "ok",
    Verdict.FAIL: "FAIL",
    Verdict.INCONCLUSIVE: "?",
    Verdict.SKIP: "-",
    Verdict.EXPECTED: "known",
    Verdict.STALE: "STALE",
}
ABSENT: Final = ""


def matrix(runs: Mapping[str, Run], *, show_all: bool = False) -> list[tuple[str, list[str]]]:
    """A row for each case: its id, and how it ended in each run.

    Without `show_all` only rows in which a run fails.
    """
    verdicts = {
        name: {result.id: result.verdict for result in run.results} for name, run in runs.items()
    }
    ids = dict.fromkeys(id for run in runs.values() for id in (r.id for r in run.results))
    rows = [(id, [_mark(verdicts[name].get(id)) for name in runs]) for id in ids]
    return [row for row in rows if show_all or MARKS[Verdict.FAIL] in row[1]]


def matrix_lines(runs: Mapping[str, Run], *, show_all: bool = False) -> Iterator[str]:
    """The matrix as text, the counts last."""
    rows = matrix(runs, show_all=show_all)
    wide = max([len(id) for id, _ in rows], default=4)
    columns = [max(len(name), 6) for name in runs]
    yield _line("case", list(runs), wide, columns)
    for id, marks in rows:
        yield _line(id, marks, wide, columns)
    for verdict in Verdict:
        counts = [str(run.counts()[verdict]) for run in runs.values()]
        yield _line(str(verdict), counts, wide, columns)


def _mark(verdict: Verdict | None) -> str:
    return ABSENT if verdict is None else MARKS[verdict]


def _line(first: str, cells: list[str], wide: int, columns: list[int]) -> str:
    padded = [f"{cell:>{width}}" for cell, width in zip(cells, columns, strict=True)]
    return "  ".join([f"{first:<{wide}}", *padded])
