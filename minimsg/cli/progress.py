"""A progress bar on the terminal for `minimsg.hub`, on standard error.

Where standard error is no terminal, one line a stage is printed instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from minimsg.hub.progress import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


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
