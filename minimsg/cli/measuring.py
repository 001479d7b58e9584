"""What `minimsg bench` measures: each benchmark run, shown as a table, given as a report.

The command and its flags are in `bench.py`; measuring itself is in `minimsg/bench/`,
which is imported only when it is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from minimsg.bench.settings import (
    CITATIONS,
    MASKS,
    TRANSFORMERS,
    LoadSettings,
    VersusSettings,
)
from minimsg.machine import load_average, machine, versions
from minimsg.text.control import escape

if TYPE_CHECKING:
    from rich.console import Console

Report = dict[str, object]
VERSUS_PACKAGES = ("minimsg", "llguidance", "torch")


def measure_server(settings: LoadSettings, console: Console) -> Report:
    """A running server from outside."""
    from minimsg.bench.load import measure
    from minimsg.bench.tables import load_table

    load_before = load_average()
    measured = asyncio.run(measure(settings))
    say = _sayer(console)
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


def measure_versus(
    vs: str, load: LoadSettings, settings: VersusSettings, console: Console, *, with_limits: bool
) -> Report:
    """Our engine or server beside another."""
    from minimsg.bench.tables import versus_table
    from minimsg.hub.extras import require

    if vs == TRANSFORMERS:
        require("transformers", extra="dev", purpose="to compare")
    model, folder = _model(load, settings)
    from minimsg.bench.versus import compare  # imports torch, which `_model` has asked for

    say = _sayer(console)
    comparison = compare(
        vs,
        folder,
        settings,
        settings.shapes(load),
        load.time_limit_s,
        say,
        with_limits=with_limits,
    )
    console.print(versus_table(vs, comparison))
    for line in comparison.lines():
        say(line)
    return {"kind": vs, "model": model} | comparison.as_dict()


def measure_masks(load: LoadSettings, settings: VersusSettings, console: Console) -> Report:
    """What holding a reply to a grammar costs."""
    from minimsg.bench.tables import masks_table

    model, folder = _model(load, settings)
    from minimsg.bench.foreign import quiet
    from minimsg.bench.masks import measure_masks as measure

    load_before = load_average()
    with quiet():
        costs = measure(folder, settings, settings.shapes(load).context)
    console.print(masks_table(costs))
    return {
        "kind": MASKS,
        "model": model,
        "costs": {name: asdict(cost) for name, cost in costs.items()},
        "load_average_before": load_before,
        "machine": machine().as_dict(),
        "versions": versions(VERSUS_PACKAGES),
    }


def measure_citations(load: LoadSettings, settings: VersusSettings, console: Console) -> Report:
    """How often replies cite the sentence that they were taken from, and what that costs."""
    from minimsg.bench.tables import citations_table

    model, _ = _model(load, settings)
    from minimsg.bench.citations import measure_citations as measure
    from minimsg.bench.citing_cost import measure_cost
    from minimsg.bench.foreign import quiet

    load_before = load_average()
    with quiet():
        cost = measure_cost(model, settings)
        scores = measure(model, settings)
    console.print(citations_table(scores))
    console.print(cost.words())
    return {
        "kind": CITATIONS,
        "model": model,
        "scores": {
            kind: {half: score.as_dict() for half, score in halves.items()}
            for kind, halves in scores.items()
        },
        "cost": cost.as_dict(),
        "load_average_before": load_before,
        "machine": machine().as_dict(),
        "versions": versions(VERSUS_PACKAGES),
    }


def measure_profile(load: LoadSettings, settings: VersusSettings, console: Console) -> Report:
    """Our own cost in a step, and the server's event loop under load."""
    from minimsg.bench.tables import steps_table, watched_table

    model, folder = _model(load, settings)
    from minimsg.bench.profile import profile

    load_before = load_average()
    found = profile(folder, settings, settings.shapes(load))
    console.print(steps_table(found.steps))
    console.print(watched_table(found.server))
    for line in found.lines():
        _sayer(console)(line)
    return {
        "kind": "profile",
        "model": model,
        **found.as_dict(),
        "load_average_before": load_before,
        "machine": machine().as_dict(),
        "versions": versions(VERSUS_PACKAGES),
    }


def _model(load: LoadSettings, settings: VersusSettings) -> tuple[str, Path]:
    """Its name, and its folder, fetched if need be."""
    from minimsg.cli.startup import fetch

    name = load.model or ("tiny" if settings.quick else "smollm2")
    return name, fetch(name, settings.data_dir)


def _sayer(console: Console) -> Callable[[str], None]:
    return partial(console.print, soft_wrap=True, markup=False)
