"""`minimsg ls`: the models on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minimsg.cli.data_dir import data_dir_option

if TYPE_CHECKING:
    from minimsg.hub.describe import Facts

TITLES = {
    "name": "NAME",
    "architecture": "ARCHITECTURE",
    "parameters": "PARAMETERS",
    "size_bytes": "SIZE",
    "source": "SOURCE",
}


@click.command()
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
def ls(data_dir: Path | None, as_json: bool) -> None:
    """List the models that were pulled, with architecture, size and source.

    A damaged one is named on standard error.

    \b
    Examples:
      minimsg ls
      minimsg ls --json
    """
    from minimsg import hub
    from minimsg.errors import MinimsgError
    from minimsg.hub.describe import summary

    found: list[Facts] = []
    for folder in hub.folders(data_dir):
        try:
            found.append(summary(folder, hub.check(folder)))
        except MinimsgError as error:
            click.echo(f"damaged: {error}", err=True)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif found:
        _print_table(found)
    else:
        click.echo("no models yet; `minimsg pull smollm2` fetches the default one")


def _print_table(found: list[Facts]) -> None:
    rows = [TITLES, *({name: _cell(name, facts[name]) for name in TITLES} for facts in found)]
    widths = {name: max(len(row[name]) for row in rows) for name in TITLES}
    for row in rows:
        line = "  ".join(text.ljust(widths[name]) for name, text in row.items())
        click.echo(line.rstrip())


def _cell(name: str, value: object) -> str:
    if name == "parameters" and isinstance(value, int):
        return count(value)
    if name == "size_bytes" and isinstance(value, int):
        return size(value)
    return str(value)


def count(number: int) -> str:
    """134515008 -> 134.5M"""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= unit:
            return f"{number / unit:.1f}{name}"
    return str(number)


def size(num_bytes: int) -> str:
    """538060032 -> 538.1 MB"""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} B"
