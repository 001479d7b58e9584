"""`minimsg show`: everything that is to be known of one model before it is served."""

from __future__ import annotations

import json
from pathlib import Path

import click

from minimsg.cli.data_dir import data_dir_option
from minimsg.cli.ls import count, size


@click.command(no_args_is_help=True)
@click.argument("name")
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print an object as JSON.")
def show(name: str, data_dir: Path | None, as_json: bool) -> None:
    """Show the model NAME: shape, window, rotation, sampling defaults, end tokens, files.

    NAME is what `minimsg ls` prints, a built-in name, a Hugging Face folder, or a .gguf
    file that was pulled. Also says what --dtype auto means for this machine.

    \b
    Examples:
      minimsg show smollm2
      minimsg show ./Qwen3-0.6B --json
    """
    from minimsg import hub
    from minimsg.cli.naming import explained
    from minimsg.hub.describe import describe

    with explained(name):
        folder = hub.resolve(name, data_dir)
    facts = describe(folder, name)
    if as_json:
        click.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    for key, value in facts.items():
        click.echo(f"{key.replace('_', ' '):18} {_text(key, value)}")


def _text(key: str, value: object) -> str:
    if key == "parameters" and isinstance(value, int):
        return f"{value:,} ({count(value)})"
    if key == "files" and isinstance(value, dict):
        return f"\n{'':18} ".join(f"{file}  {size(bytes)}" for file, bytes in value.items())
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    return _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "-" if value is None else str(value)
