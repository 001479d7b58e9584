"""Progress bars on the terminal, on standard error: of bytes for `minimsg.hub`, of requests.

Where standard error is no terminal, lines are printed instead: one a stage, or one at times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from minimsg.hub.progress import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


LINE_S: Final = 10.0  # between two lines that only count


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """The `progress` to hand to `pull` or `ensure`; the bar is gone when the block ends."""
    if not sys.stderr.isatty():
        yield _StageLines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bars(*columns, TransferSpeedColumn(), console=Console(stderr=True)) as bars:
        yield _Bars(bars)


@contextmanager
def counting_bar(
    what: str, total: int, state: Callable[[], tuple[int, str]]
) -> Iterator[Callable[[], None]]:
    """What to call when `state` has changed: how many of `total` are done, and a note on them."""
    if not sys.stderr.isatty():
        lines = _CountLines(what, total, state)
        yield lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, TextColumn("{task.description}"), console=Console(stderr=True)) as bars:
        number, note = state()
        task = bars.add_task(note, total=total, completed=number)

        def show() -> None:
            number, note = state()
            bars.update(task, completed=number, description=note)

        yield show


class _CountLines:
    """Says the number at the beginning, now and then, and at the end."""

    def __init__(self, what: str, total: int, state: Callable[[], tuple[int, str]]) -> None:
        self._what = what
        self._total = total
        self._state = state
        self._next = 0.0

    def __call__(self) -> None:
        number, note = self._state()
        if monotonic() >= self._next or number == self._total:
            said = f"{number:,} of {self._total:,} {self._what}"
            click.echo(f"{said}, {note}" if note else said, err=True)
            self._next = monotonic() + LINE_S


class _StageLines:
    """Says each stage once."""

    def __init__(self) -> None:
        self.stage = ""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self.stage:
            size = f" ({total / 1e6:,.0f} MB)" if total else ""
            click.echo(f"{stage}{size}", err=True)
        self.stage = stage


class _Bars:
    """One bar a stage; the finished ones stay above it."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage not in self.tasks:
            self.tasks[stage] = self.bars.add_task(stage, total=total)
        self.bars.update(self.tasks[stage], completed=done, total=total)
