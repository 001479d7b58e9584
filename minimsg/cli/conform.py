"""`minimsg conform`: hold any Messages server against the rules; compare reports.

Flags, files and colour only: cases and verdicts are made in `minimsg/conformance/`.
`conform URL` runs, `conform matrix` lays reports side by side, `conform mutants` scores.

Exit codes: 0 every rule holds, 1 one is broken, 2 a flag, a file or a case that cannot be,
3 nothing is broken but the baseline is stale, 4 no server answers.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from minimsg import __version__
from minimsg.cli.mutants import mutants
from minimsg.cli.verdicts import exit_code, progress, show, written
from minimsg.conformance.settings import PROFILES, VERSIONS, Profile, Settings, Version
from minimsg.errors import ConfigError
from minimsg.text.control import escape

if TYPE_CHECKING:
    from minimsg.conformance.case import Case
    from minimsg.conformance.verdict import Run

T = TypeVar("T")

EXIT_UNREACHABLE = 4
FILE = click.File("w", encoding="utf-8", lazy=False)
REPORT = click.Path(exists=True, dir_okay=False, path_type=Path)


class Unreached(click.ClickException):
    """No server there: not a verdict about one."""

    exit_code = EXIT_UNREACHABLE


class RunUnlessNamed(click.Group):
    """A group in which whatever is no name of a command is the arguments of `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and args[0] in self.commands
        return super().parse_args(ctx, args if named else ["run", *args])


@click.group(cls=RunUnlessNamed)
def conform() -> None:
    """Hold a Messages server against the rules of the API."""


conform.add_command(mutants)


@conform.command("run", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("url", required=False)
@click.option("--key", envvar="MINIMSG_CONFORM_KEY", show_envvar=True, help="The API key.")
@click.option("--model", help="Model to ask for; default is the first of GET /v1/models.")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="compat",
    show_default=True,
    help="compat: what the official SDKs and Claude Code need; strict: as the hosted API.",
)
@click.option(
    "--api-version",
    "version",
    type=click.Choice(VERSIONS),
    default=VERSIONS[0],
    show_default=True,
    help="anthropic-version of cases that have none of their own.",
)
@click.option("--case", "patterns", multiple=True, help="Id to run, with * and ?; repeatable.")
@click.option("--list", "only_list", is_flag=True, help="List the cases, one a line, and stop.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("--seed", default=0, show_default=True, help="Order of the cases.")
@click.option("--jobs", type=click.IntRange(1), default=4, show_default=True, help="Cases at once.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0.1), default=60.0, show_default=True,
    help="Seconds for one answer.",
)  # fmt: skip
@click.option("--baseline", type=REPORT, help="TOML of known failures; stale ones break the run.")
@click.option("--json", "json_file", type=FILE, help="Write the report as JSON; - is stdout.")
@click.option("--junit", "junit_file", type=FILE, help="Write the report as JUnit XML.")
@click.option("--html", "html_file", type=FILE, help="Write the report as one HTML page.")
@click.option("--badge", "badge_file", type=FILE, help="Write a badge as SVG.")
@click.option("--against", metavar="URL", help="Ask this server, too, and show differences only.")
@click.option("-v", "--verbose", is_flag=True, help="Say of every case why it was not looked at.")
@click.pass_context
def run_cases(
    ctx: click.Context,
    url: str | None,
    key: str | None,
    model: str | None,
    profile: Profile,
    version: Version,
    patterns: tuple[str, ...],
    only_list: bool,
    dry_run: bool,
    seed: int,
    jobs: int,
    timeout_s: float,
    baseline: Path | None,
    json_file: TextIO | None,
    junit_file: TextIO | None,
    html_file: TextIO | None,
    badge_file: TextIO | None,
    against: str | None,
    verbose: bool,
) -> None:
    """Hold the Messages server at URL against the rules of the API.

    Any server, any model: what depends on the model's words is inconclusive where the
    model did not get there. A failure shows the rule, what was expected and seen, the
    bytes, and the command that repeats it.

    \b
    Examples:
      minimsg conform http://127.0.0.1:8080
      minimsg conform http://127.0.0.1:8080 --case 'stream.*' --jobs 1
      minimsg conform http://127.0.0.1:8080 --profile strict --json report.json
      minimsg conform matrix ours.json theirs.json
      minimsg conform mutants http://127.0.0.1:8080

    Exit codes: 0 every MUST and SHOULD holds, 1 one is broken, 2 a flag or a file that
    cannot be, 3 the baseline is stale, 4 no server answers.
    """
    from minimsg.conformance.catalog import load_cases, select
    from minimsg.conformance.report import listing
    from minimsg.conformance.runner import applicable

    cases = applicable(select(load_cases(), patterns), profile)
    if only_list:
        click.echo("\n".join(listing(cases)))
        return
    if url is None:
        raise click.UsageError("which server? minimsg conform http://127.0.0.1:8080")
    settings = Settings(url, key, model, profile, version, seed, jobs, timeout_s, __version__)
    if dry_run:
        _show_requests(cases, settings)
        return
    if against:
        _show_differences(cases, settings, against)
        return
    files = {"json": json_file, "junit": junit_file, "html": html_file, "badge": badge_file}
    run = _run(cases, settings, baseline)
    aside = any(file is not None and file.name == "<stdout>" for file in files.values())
    show(run, verbose=verbose, aside=aside)
    for kind, file in files.items():
        if file:
            file.write(written(run, kind))
    ctx.exit(exit_code(run))


def _run(cases: list[Case], settings: Settings, baseline: Path | None) -> Run:
    from dataclasses import replace

    from minimsg.conformance.baseline import apply, read_baseline
    from minimsg.conformance.runner import run as run_all

    known = read_baseline(baseline) if baseline else {}
    run = _await(run_all(cases, settings, progress(len(cases))))
    return replace(run, results=apply(known, run.results))


def _show_differences(cases: list[Case], settings: Settings, other: str) -> None:
    from minimsg.conformance.against import differences

    async def tell() -> None:
        async for found in differences(cases, settings, other):
            click.echo(escape(found.line))

    _await(tell())


def _await(asking: Coroutine[object, object, T]) -> T:
    """What comes of `asking`. Raises Unreached for a server that does not answer."""
    import asyncio

    from minimsg.conformance.runner import Unreachable

    try:
        return asyncio.run(asking)
    except Unreachable as error:
        raise Unreached(escape(str(error))) from error


def _show_requests(cases: list[Case], settings: Settings) -> None:
    """The first request of every case as a `curl` line; later ones may need its answer."""
    from minimsg.conformance.player import first_request
    from minimsg.conformance.request import Asking
    from minimsg.conformance.wire import Address

    asking = Asking(Address.of(settings.url), settings.version, settings.key)
    for case in cases:
        request = first_request(case, asking, settings.model or "MODEL")
        click.echo(f"{case.id}\n  {request.curl(asking.address)}")


@conform.command("matrix")
@click.argument("reports", nargs=-1, required=True, type=REPORT)
@click.option("--all", "show_all", is_flag=True, help="Also cases in which no server fails.")
def matrix(reports: tuple[Path, ...], show_all: bool) -> None:
    """Lay JSON reports side by side: a line for each case that fails somewhere."""
    from minimsg.conformance.matrix import matrix_lines

    runs = {path.stem: _read(path) for path in reports}
    click.echo("\n".join(matrix_lines(runs, show_all=show_all)))


def _read(path: Path) -> Run:
    from minimsg.conformance.verdict import Run

    try:
        return Run.from_json(json.loads(path.read_text("utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no report of minimsg conform: {error}") from error
