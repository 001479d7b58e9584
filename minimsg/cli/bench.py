"""`minimsg bench`: how fast a Messages server is, or our engine beside another or itself.

Flags and files only: what is measured is in `measuring.py`, how in `minimsg/bench/`,
flags with a default are in `bench/settings.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from minimsg.bench.settings import CITATIONS, MASKS, RIVALS, LoadSettings, VersusSettings
from minimsg.cli.options import options_from

if TYPE_CHECKING:
    from minimsg.cli.measuring import Report


@click.command()
@click.argument(
    "reports", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar=""
)
@click.option(
    "--vs",
    type=click.Choice(list(RIVALS)),
    help="Compare with " + "; ".join(f"{n}: {what}" for n, what in RIVALS.items()) + ".",
)
@click.option("--profile", is_flag=True, help="What a step costs beside the model, and a server.")
@click.option(
    "--limit", "with_limits", is_flag=True, help="With --vs: show physical limits, measured too."
)
@click.option(
    "--json",
    "json_file",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE",
    help="Write the report as JSON; - is the standard output.",
)
@click.option(
    "--html",
    "html_file",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE",
    help="Write the report as one page with plots; - is the standard output.",
)
@click.option(
    "--table", is_flag=True, help="Measure nothing: show JSON reports as a table in Markdown."
)
@options_from(LoadSettings)
@options_from(VersusSettings)
def bench(
    reports: tuple[Path, ...],
    vs: str | None,
    profile: bool,
    with_limits: bool,
    json_file: TextIO | None,
    html_file: TextIO | None,
    table: bool,
    load_settings: LoadSettings,
    versus_settings: VersusSettings,
) -> None:
    """Measure a Messages server, or the engine beside llama.cpp, transformers or itself.

    The figures of a server are those that a client sees: time to first token (TTFT),
    time between tokens, tokens per second, over a closed loop of N streams.

    \b
    Examples:
      minimsg bench --streams 1,8 --requests 32
      minimsg bench --url http://127.0.0.1:9000 --model some-model --json report.json
      minimsg bench --vs transformers --limit --html report.html
      minimsg bench --vs llama-bench --llama-bench build/bin/llama-bench --gguf q8_0.gguf
      minimsg bench --profile
      minimsg bench --table report.json other.json
    """
    if table:
        _show_table(reports)
        return
    if reports or (profile and vs):
        raise click.UsageError("files are named with --table only, --profile and --vs one by one")
    from rich.console import Console

    from minimsg.cli import measuring

    # The table gives way to what is written to the standard output.
    is_taken = any(each.name == "<stdout>" for each in (json_file, html_file) if each)
    console = Console(stderr=is_taken, highlight=False)
    load, versus = load_settings, versus_settings
    if profile:
        report = measuring.measure_profile(load, versus, console)
    elif vs == MASKS:
        report = measuring.measure_masks(load, versus, console)
    elif vs == CITATIONS:
        report = measuring.measure_citations(load, versus, console)
    elif vs:
        report = measuring.measure_versus(vs, load, versus, console, with_limits=with_limits)
    else:
        report = measuring.measure_server(load, console)
    _write(report, json_file, html_file)


def _write(report: Report, json_file: TextIO | None, html_file: TextIO | None) -> None:
    if json_file:
        json.dump(report, json_file, indent=2)
        json_file.write("\n")
    if html_file:
        from minimsg.bench.page import page

        html_file.write(page(report))


def _show_table(reports: tuple[Path, ...]) -> None:
    from minimsg.bench.markdown import markdown_table
    from minimsg.bench.stored import Stored

    if not reports:
        raise click.UsageError("--table needs the names of JSON reports")
    click.echo(markdown_table([Stored.read(file) for file in reports]))
