"""What `minimsg conform` says of a run: on a terminal, in files, to the shell.

Colours, files and exit codes only; the words are made in `minimsg/conformance/`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from minimsg.conformance.verdict import Result, Run

EXIT_BROKEN, EXIT_STALE = 1, 3
COLOURS = {"fail": "red", "stale": "magenta", "inconclusive": "yellow", "expected-fail": "cyan"}


def exit_code(run: Run) -> int:
    """What the shell is told."""
    from minimsg.conformance.verdict import Verdict

    if any(result.verdict == Verdict.FAIL for result in run.broken):
        return EXIT_BROKEN
    return EXIT_STALE if run.broken else 0


def progress(num_cases: int) -> Callable[[Result], None]:
    """Tell a terminal how far it is; a file is told nothing."""
    done = 0

    def tell(result: Result) -> None:
        nonlocal done
        done += 1
        click.echo(f"\r{done}/{num_cases} {result.id:<60.60}", nl=False, err=True)
        if done == num_cases:
            click.echo("\r" + " " * 80 + "\r", nl=False, err=True)

    def stay_quiet(result: Result) -> None:
        pass

    return tell if sys.stderr.isatty() else stay_quiet


def show(run: Run, *, verbose: bool, aside: bool) -> None:
    from minimsg.conformance.report import report

    for line in report(run, verbose=verbose):
        colour = COLOURS.get(line.split(" ")[0].lower())
        click.secho(line, fg=colour, err=aside)


def written(run: Run, kind: str) -> str:
    """The report in one of its forms."""
    match kind:
        case "junit":
            from minimsg.conformance.junit import junit

            return junit(run)
        case "html":
            from minimsg.conformance.page import page

            return page(run)
        case "badge":
            from minimsg.conformance.badge import badge

            return badge(run)
        case _:
            return json.dumps(run.to_json(), indent=1) + "\n"
