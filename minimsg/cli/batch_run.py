"""`minimsg batch run`: a file of requests answered here, or by processes of Ray, without a server.

Flags, words and the bar only: files, engine and Ray are in `minimsg/offline/`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from minimsg.cli.logs import configure
from minimsg.cli.naming import explained
from minimsg.cli.options import options_from
from minimsg.cli.startup import DEFAULT_MODEL, check_settings, fetch, require_engine
from minimsg.config import EngineConfig, ParserConfig, ServerConfig
from minimsg.server.loading import served_name

if TYPE_CHECKING:
    from minimsg.offline.answering import Asked
    from minimsg.offline.requests import RequestsFile, Scan
    from minimsg.offline.results import ResultsFile

# Of a server's settings, those that do not need one.
SERVER_FLAGS = (
    "profile",
    "alias",
    "any_model",
    "without",
    "drop_server_tools",
    "allow_urls",
    "allow_http_urls",
    "data_dir",
    "default_max_tokens",
    "min_cache_tokens",
    "drain_timeout_s",
)
LOCAL_RAY = "local"


@click.command(no_args_is_help=True)
@click.argument("requests", type=click.Path(path_type=Path))
@click.argument("model", default=DEFAULT_MODEL)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="File of results; one that is there is completed.",
)
@click.option("--shard", default="1/1", help="Answer each n-th request only, from the i-th: i/n.")
@click.option(
    "--ray",
    "address",
    is_flag=False,
    flag_value=LOCAL_RAY,
    metavar="[ADDRESS]",
    help="Answer on a Ray cluster: that at ADDRESS, 'auto', or one for this run.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="With --ray: models to load; default is one a GPU, or one a machine without any.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the results that are there although requests or model have changed since.",
)
@click.option("--api-version", default="2023-06-01", show_default=True, help="As the header.")
@click.option("--beta", multiple=True, help="As the anthropic-beta header; several times.")
@options_from(ServerConfig, SERVER_FLAGS)
@options_from(ParserConfig)
@options_from(EngineConfig)
def run(
    requests: Path,
    model: str,
    output: Path,
    shard: str,
    address: str | None,
    workers: int | None,
    keep: bool,
    api_version: str,
    beta: tuple[str, ...],
    server_config: ServerConfig,
    parser_config: ParserConfig,
    engine_config: EngineConfig,
) -> None:
    """Answer a file of REQUESTS with MODEL, without a server.

    A line of it is {"custom_id": "...", "params": {a Messages request}}; the results are
    lines like those of the API. Whatever ends it, the same command goes on, and each
    custom_id has one result. Ctrl-C lets what is in work end.

    \b
    Examples:
      minimsg batch run requests.jsonl smollm2 -o results.jsonl
      minimsg batch run requests.jsonl -o results-3.jsonl --shard 3/8
      minimsg batch run requests.jsonl -o results.jsonl --ray auto --workers 4
    """
    configure("warning")
    require_engine()
    from minimsg.offline.answering import Asked
    from minimsg.offline.requests import RequestsFile, Shard
    from minimsg.offline.results import Origin, ResultsFile

    part, file = Shard.parse(shard), RequestsFile(requests)
    asked = Asked(model, engine_config, server_config, parser_config, api_version, beta)
    _check(asked, address, workers)
    scan = file.scan(part, forgives=True)
    origin = Origin(scan.digest, served_name(model), str(part))
    with ResultsFile.open(output, requests, scan.ids, origin, keeps=keep) as results:
        if scan.ids - results.done:
            _answer(asked, file, scan, results, address, workers)
    _report(scan, results)


def _check(asked: Asked, address: str | None, workers: int | None) -> None:
    """Refuse what cannot work before anything is read. Raises ConfigError, InvalidRequest."""
    _ = asked.dialect
    if address is None:
        if workers is not None:
            raise click.UsageError("--workers is for --ray; here is one model")
        return
    from minimsg.hub.extras import require

    for package in ("ray", "pyarrow"):
        require(package, extra="ray", purpose="to answer with Ray")


def _answer(
    asked: Asked,
    file: RequestsFile,
    scan: Scan,
    results: ResultsFile,
    address: str | None,
    workers: int | None,
) -> None:
    """Answer what has no result. Raises DiskFailed, GenerationFailed, what loading raises."""
    lines = file.lines_of(scan.ids - results.done)
    if address is None:
        check_settings(asked.engine)
        fetch(asked.model, asked.server.data_dir)
    with explained(asked.model), _bar(len(scan.ids), results) as show:
        if address is not None:
            from minimsg.offline.on_ray import run_on_ray

            run_on_ray(asked, lines, results, show, address=address, num_workers=workers)
            return
        import asyncio

        from minimsg.offline.run import run as run_here

        asyncio.run(run_here(asked, lines, results, show))


def _report(scan: Scan, results: ResultsFile) -> None:
    """Say what is there; what is not there was stopped. Raises Abort then."""
    num_left = len(scan.ids - results.done)
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(results.counts.items()))
    click.echo(f"{results.path}: {kinds or 'no results'}", err=True)
    if num_left:
        click.echo(f"{num_left:,} are left; the same command goes on with them", err=True)
        raise click.Abort


def _bar(total: int, results: ResultsFile) -> AbstractContextManager[Callable[[], None]]:
    from minimsg.cli.progress import counting_bar

    def state() -> tuple[int, str]:
        num_errored = results.counts["errored"]
        return len(results.done), f"{num_errored:,} errored" if num_errored else ""

    return counting_bar("requests", total, state)
