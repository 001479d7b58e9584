"""`minimsg bench`: how fast a Messages server is, or our engine beside another or itself.

Runs one of the two benchmarks, prints a table and writes JSON. Measuring is in
`bench/load.py` and `bench/versus.py`, arithmetic in `bench/report.py` and
`bench/rounds.py`, flags in `bench/settings.py`, tables in `bench/tables.py`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click

from minimsg.bench.settings import MASKS, RIVALS, TRANSFORMERS, LoadSettings, VersusSettings
from minimsg.cli.logs import escape
from minimsg.cli.options import options_from

if TYPE_CHECKING:
    from rich.console import Console

Report = dict[str, object]


@click.command()
@click.option(
    "--vs",
    type=click.Choice(list(RIVALS)),
    help="Compare in one process: " + "; ".join(f"{n}: {what}" for n, what in RIVALS.items()) + ".",
)
@click.option(
    "--json",
    "json_file",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE",
    help="Write the report as JSON; - is the standard output.",
)
@click.option(
    "--limit", "with_limits", is_flag=True, help="With --vs: show physical limits, measured too."
)
@options_from(LoadSettings)
@options_from(VersusSettings)
def bench(
    vs: str | None,
    json_file: TextIO | None,
    with_limits: bool,
    load_settings: LoadSettings,
    versus_settings: VersusSettings,
) -> None:
    """Measure a Messages server, or the engine beside transformers or itself.

    The figures of a server are those that a client sees: time to first token (TTFT),
    time between tokens, tokens per second, over a closed loop of N streams.

    \b
    Examples:
      minimsg bench --streams 1,8 --requests 32
      minimsg bench --url http://127.0.0.1:9000 --model some-model --json report.json
      minimsg bench --vs transformers --json -
      minimsg bench --vs no-prefix-cache
    """
    from rich.console import Console

    # The table gives way to JSON on the standard output.
    console = Console(
        stderr=json_file is not None and json_file.name == "<stdout>", highlight=False
    )
    if vs == MASKS:
        report = _masks(load_settings, versus_settings, console)
    elif vs:
        report = _versus(vs, load_settings, versus_settings, console, with_limits=with_limits)
    else:
        report = _load(load_settings, console)
    if json_file:
        json.dump(report, json_file, indent=2)
        json_file.write("\n")


def _load(settings: LoadSettings, console: Console) -> Report:
    import asyncio

    from minimsg.bench.load import measure
    from minimsg.bench.tables import load_table
    from minimsg.machine import load_average, machine, versions

    load_before = load_average()
    measured = asyncio.run(measure(settings))
    say = partial(console.print, soft_wrap=True, markup=False)
    say(f"{settings.url}, model {escape(measured.model)}, prompts {measured.prompt_length}")
    console.print(load_table(measured.levels))
    for level in measured.levels:
        for kind, number in level.errors.items():
            say(f"{level.streams} streams: {number} x {kind}")
    asked = {name: value for name, value in asdict(settings).items() if name != "api_key"}
    return {
        "kind": "server",
        "settings": asked | {"model": measured.model},
        "prompt_length": measured.prompt_length,
        "levels": [asdict(level) for level in measured.levels],
        "load_average_before": load_before,
        "machine": machine().as_dict(),
        "versions": versions(["minimsg", "aiohttp"]),
    }


def _versus(
    vs: str,
    load: LoadSettings,
    settings: VersusSettings,
    console: Console,
    *,
    with_limits: bool,
) -> Report:
    from minimsg.bench.tables import versus_table
    from minimsg.cli.startup import fetch
    from minimsg.hub.extras import require

    if vs == TRANSFORMERS:
        require("transformers", extra="dev", purpose="to compare")
    model = load.model or ("tiny" if settings.quick else "smollm2")
    folder = fetch(model, settings.data_dir)
    from minimsg.bench.versus import compare  # imports torch, which `fetch` has asked for

    say = partial(console.print, soft_wrap=True, markup=False)
    comparison = compare(vs, folder, settings, load.time_limit_s, say, with_limits=with_limits)
    findings = comparison.findings
    console.print(versus_table(vs, comparison))
    if agreement := findings.agreement:
        say(f"greedy tokens that agree: {agreement.same} of {agreement.tokens}")
    for reason in findings.noise:
        say(f"no verdict: {reason}")
    for key, verdict in (findings.verdicts or {}).items():
        say(f"{key}: minimsg is {verdict}")
    return {"kind": vs, "model": model} | comparison.as_dict()


def _masks(load: LoadSettings, settings: VersusSettings, console: Console) -> Report:
    from minimsg.bench.tables import masks_table
    from minimsg.cli.startup import fetch
    from minimsg.machine import load_average, machine, versions

    model = load.model or ("tiny" if settings.quick else "smollm2")
    folder = fetch(model, settings.data_dir)
    from minimsg.bench.foreign import quiet
    from minimsg.bench.masks import measure_masks  # imports torch, which `fetch` has asked for

    load_before = load_average()
    with quiet():
        costs = measure_masks(folder, settings)
    console.print(masks_table(costs))
    return {
        "kind": MASKS,
        "model": model,
        "costs": {name: asdict(cost) for name, cost in costs.items()},
        "load_average_before": load_before,
        "machine": machine().as_dict(),
        "versions": versions(["minimsg", "llguidance", "torch"]),
    }
