"""`minimsg conform mutants`: of servers that do one thing wrong, how many are found?

Flags and lines only: the mutants stand in `minimsg/misbehave/`, the score is made in
`minimsg/conformance/score.py`.
"""

from __future__ import annotations

import click

from minimsg.cli.verdicts import EXIT_BROKEN
from minimsg.conformance.settings import Settings

ENOUGH = 0.97  # of all mutants


@click.command("mutants")
@click.argument("url", required=False)
@click.option("--list", "only_list", is_flag=True, help="List the mutants and stop.")
@click.option("--jobs", type=click.IntRange(1), default=4, show_default=True)
@click.pass_context
def mutants(ctx: click.Context, url: str | None, only_list: bool, jobs: int) -> None:
    """Score the suite: of servers that do one thing wrong, how many does it find?

    A proxy stands before the server at URL, which behaves, and does one thing wrong after
    the other. Exit code 1 where fewer than 97 of 100 are found. For all of them the model
    has to think, such as a scripted one whose text begins with <think>.
    """
    import asyncio

    from minimsg.misbehave.catalog import MUTANTS

    if only_list:
        for mutant in MUTANTS.values():
            click.echo(f"{mutant.name:<28} {mutant.title}")
        return
    if url is None:
        raise click.UsageError("which server? minimsg conform mutants http://127.0.0.1:8080")
    num_caught = asyncio.run(_score(url, jobs))
    click.echo(f"{num_caught} of {len(MUTANTS)} caught and named")
    ctx.exit(0 if num_caught >= ENOUGH * len(MUTANTS) else EXIT_BROKEN)


async def _score(url: str, jobs: int) -> int:
    """How many mutants are caught and named; each is told as it comes."""
    from minimsg.conformance.catalog import load_cases
    from minimsg.conformance.runner import applicable
    from minimsg.conformance.score import score
    from minimsg.misbehave.catalog import MUTANTS
    from minimsg.misbehave.proxy import PASSES_ON, Proxy, in_front

    proxy = Proxy(url)

    def switch(name: str | None) -> None:
        proxy.mutant = MUTANTS[name] if name else PASSES_ON

    cases = applicable(load_cases(), "compat")
    topics = {name: mutant.topic for name, mutant in MUTANTS.items()}
    num_caught = 0
    async with in_front(proxy, "127.0.0.1", 0) as before:
        async for catch in score(cases, Settings(before, jobs=jobs), topics, switch):
            click.echo(catch.line)
            num_caught += catch.is_named
    return num_caught
