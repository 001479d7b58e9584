"""`minimsg doctor`: can this machine serve, and if not, what is to be done.

Prints what `checks.py` finds. Works without torch, and says that it is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minimsg.cli.data_dir import data_dir_option
from minimsg.cli.options import environment_name
from minimsg.config import ServerConfig

if TYPE_CHECKING:
    from minimsg.cli.checks import Check


@click.command()
@data_dir_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=ServerConfig.port,
    show_default=True,
    envvar=environment_name("port"),
    show_envvar=True,
    help="Port that a server would listen on.",
)
@click.option("--verify", is_flag=True, help="Also hash the files of the models.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.pass_context
def doctor(
    ctx: click.Context, data_dir: Path | None, port: int, verify: bool, as_json: bool
) -> None:
    """Say whether this machine can serve, and what to do if not.

    Looks at Python, packages, CPU, memory, devices, kernels, models and the port. Exits
    with 0 if `minimsg serve` would work, else with 1.

    \b
    Examples:
      minimsg doctor
      minimsg doctor --json --port 9000
    """
    from minimsg.cli.checks import all_checks
    from minimsg.machine import load_average, machine, versions

    checks = all_checks(data_dir, port, verify=verify)
    facts = machine().as_dict() | {"load_average": load_average()}
    would_serve = all(check.ok for check in checks if check.is_needed)
    if as_json:
        report = {
            "would_serve": would_serve,
            "machine": facts,
            "versions": versions(),
            "checks": [check.as_dict() for check in checks],
        }
        click.echo(json.dumps(report, indent=2))
    else:
        _print(facts, versions(), checks)
    ctx.exit(0 if would_serve else 1)


def _print(facts: dict[str, object], versions: dict[str, str | None], checks: list[Check]) -> None:
    for name, value in facts.items():
        click.echo(_fact(name, value))
    click.echo("packages: " + ", ".join(f"{name} {v or '-'}" for name, v in versions.items()))
    for check in checks:
        mark = "ok " if check.ok else "NO " if check.is_needed else "-  "
        click.echo(f"{mark} {check.name}: {check.found}")
        if not check.ok and check.remedy:
            click.echo(f"      {check.remedy}")


def _fact(name: str, value: object) -> str:
    """`free_memory_bytes`, 8000000000 -> `free memory: 8.0 GB`."""
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{name.removesuffix('_bytes').replace('_', ' ')}: {value / 1e9:.1f} GB"
    text = " ".join(value) if isinstance(value, list) else value
    return f"{name.replace('_', ' ')}: {text}"
