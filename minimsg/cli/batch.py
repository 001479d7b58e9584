"""`minimsg batch`: message batches, at a server or without one.

A verb a function: what is asked and what is said. A server is asked by `remote.py`, files are
sent and kept by `transfer.py`, `run` is in `batch_run.py`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from minimsg.cli.batch_run import run
from minimsg.cli.batch_words import Json, described, one_line, table
from minimsg.cli.options import options_from
from minimsg.cli.remote_settings import RemoteSettings

if TYPE_CHECKING:
    from minimsg.cli.remote import Remote

T = TypeVar("T")

as_json = click.option("--json", "as_json", is_flag=True, help="Print what the server says.")
wait = click.option("--wait", "waits", is_flag=True, help="Return once the batch has ended.")


@click.group(no_args_is_help=True)
def batch() -> None:
    """Message batches: at any server, or a file of requests answered here.

    A line of a file of requests is {"custom_id": "...", "params": {a Messages request}}.

    \b
    Examples:
      minimsg batch create requests.jsonl --wait
      minimsg batch results msgbatch_01AbC -o results.jsonl
      minimsg batch run requests.jsonl smollm2 -o results.jsonl
    """


@batch.command(no_args_is_help=True)
@click.argument("requests", type=click.Path(path_type=Path))
@wait
@as_json
@click.option("--api-version", help="The anthropic-version header; default is 2023-06-01.")
@click.option("--beta", multiple=True, help="A name for the anthropic-beta header; several times.")
@options_from(RemoteSettings)
def create(
    requests: Path,
    waits: bool,
    as_json: bool,
    api_version: str | None,
    beta: tuple[str, ...],
    remote_settings: RemoteSettings,
) -> None:
    """Send a file of REQUESTS as a new batch, after a look at every line of it.

    \b
    Examples:
      minimsg batch create requests.jsonl
      minimsg batch create requests.jsonl --wait --base-url http://127.0.0.1:9000
    """
    from minimsg.cli.transfer import Upload

    upload = Upload.of(requests)
    version = {"anthropic-version": api_version} if api_version else {}
    betas = {"anthropic-beta": ",".join(beta)} if beta else {}

    async def send(remote: Remote) -> Json:
        return await remote.create(upload.body(), upload.num_bytes, version | betas)

    made = _ask(remote_settings, send)
    if waits:
        click.echo(one_line(made), err=True)
        made = _wait(remote_settings, str(made.get("id")))
    _show(made, as_json)


@batch.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--after-id", help="The page behind this batch: older ones.")
@click.option("--before-id", help="The page before this batch: newer ones.")
@click.option("--all", "takes_all", is_flag=True, help="Every page in that direction.")
@as_json
@options_from(RemoteSettings)
def list_(
    limit: int,
    after_id: str | None,
    before_id: str | None,
    takes_all: bool,
    as_json: bool,
    remote_settings: RemoteSettings,
) -> None:
    """List batches, newest first.

    \b
    Examples:
      minimsg batch list --all
      minimsg batch list --limit 5 --after-id msgbatch_01AbC --json
    """
    if after_id and before_id:
        raise click.UsageError("--after-id and --before-id are two directions: name one")
    name = "before_id" if before_id else "after_id"

    async def walk(remote: Remote) -> Json:
        return await _pages(remote, limit, name, after_id or before_id, takes_all=takes_all)

    page = _ask(remote_settings, walk)
    if as_json:
        click.echo(json.dumps(page, indent=2))
        return
    click.echo(table(page["data"]))
    if page.get("has_more"):
        cursor = page.get("first_id" if before_id else "last_id")
        click.echo(f"more with --{name.replace('_', '-')} {cursor}, or all with --all", err=True)


@batch.command(no_args_is_help=True)
@click.argument("id")
@wait
@as_json
@options_from(RemoteSettings)
def show(id: str, waits: bool, as_json: bool, remote_settings: RemoteSettings) -> None:
    """Show the batch ID as it is now.

    \b
    Examples:
      minimsg batch show msgbatch_01AbC
      minimsg batch show msgbatch_01AbC --wait --json
    """
    found = (
        _wait(remote_settings, id)
        if waits
        else _ask(remote_settings, lambda remote: remote.batch(id))
    )
    _show(found, as_json)


@batch.command(no_args_is_help=True)
@click.argument("id")
@as_json
@options_from(RemoteSettings)
def cancel(id: str, as_json: bool, remote_settings: RemoteSettings) -> None:
    """Begin no more requests of the batch ID; those in work end and keep their results.

    \b
    Example:
      minimsg batch cancel msgbatch_01AbC
    """
    _show(_ask(remote_settings, lambda remote: remote.cancel(id)), as_json)


@batch.command(no_args_is_help=True)
@click.argument("id")
@as_json
@options_from(RemoteSettings)
def delete(id: str, as_json: bool, remote_settings: RemoteSettings) -> None:
    """Forget the batch ID and its results, once it has ended.

    \b
    Example:
      minimsg batch delete msgbatch_01AbC
    """
    answer = _ask(remote_settings, lambda remote: remote.delete(id))
    click.echo(json.dumps(answer, indent=2) if as_json else f"deleted {id}")


@batch.command(no_args_is_help=True)
@click.argument("id")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write, whole or not at all."
)
@options_from(RemoteSettings)
def results(id: str, output: Path | None, remote_settings: RemoteSettings) -> None:
    """Print the results of the batch ID, a line of JSON each, in any order.

    \b
    Examples:
      minimsg batch results msgbatch_01AbC -o results.jsonl
      minimsg batch results msgbatch_01AbC | head -1
    """
    from minimsg.cli.transfer import download

    _ask(remote_settings, lambda remote: download(remote, id, output))


batch.add_command(run)


def _ask(settings: RemoteSettings, ask: Callable[[Remote], Awaitable[T]]) -> T:
    """What `ask` gets of the server. Raises ConfigError."""
    import asyncio

    from minimsg.cli.remote import Remote

    async def run_it() -> T:
        async with Remote.open(settings) as remote:
            return await ask(remote)

    return asyncio.run(run_it())


def _wait(settings: RemoteSettings, id: str) -> Json:
    from minimsg.cli.transfer import until_ended

    try:
        return _ask(settings, lambda remote: until_ended(remote, id))
    except KeyboardInterrupt:
        click.echo(f"it goes on there; `minimsg batch show {id} --wait` waits again", err=True)
        raise


async def _pages(
    remote: Remote, limit: int, name: str, cursor: str | None, *, takes_all: bool
) -> Json:
    """A page, or all behind it as one."""
    page = await _page(remote, limit, name, [cursor])
    found = page["data"]
    while takes_all and page.get("has_more"):
        ids = [each["id"] for each in found]
        is_newer = name == "before_id"
        page = await _page(remote, limit, name, [cursor, *(ids[::-1] if is_newer else ids)])
        found = page["data"] + found if is_newer else found + page["data"]
    first_id, last_id = (found[0]["id"], found[-1]["id"]) if found else (None, None)
    return page | {"data": found, "first_id": first_id, "last_id": last_id}


async def _page(remote: Remote, limit: int, name: str, cursors: list[str | None]) -> Json:
    """The page behind the last of `cursors` that nobody has deleted meanwhile."""
    from minimsg.cli.remote import Invalid

    while True:
        cursor = cursors.pop()
        try:
            return await remote.batches(limit=str(limit), **({name: cursor} if cursor else {}))
        except Invalid:
            if not cursors:
                raise


def _show(found: Json, as_json: bool) -> None:
    click.echo(json.dumps(found, indent=2) if as_json else described(found))
