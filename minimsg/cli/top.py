"""`minimsg top`: what a server is doing, live.

Asks /metrics of any minimsg server and draws it; what the figures mean is in `figures.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from minimsg.cli.figures import Figures, Rates, hit_share, rates
from minimsg.cli.options import options_from
from minimsg.config import option
from minimsg.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

TIMEOUT_S = 5.0
MAX_BYTES = 1 << 20  # of a reply that is read: /metrics has some ten thousand


@dataclass(frozen=True)
class TopSettings:
    """`minimsg top`: whom to ask, and how often."""

    url: str = option("http://127.0.0.1:8080", "Base URL; nothing else is contacted.")
    api_key: str | None = option(None, "Key to send, if something before the server wants one.")
    interval_s: float = option(1.0, "Seconds between two looks.", minimum=1)


@click.command()
@click.option("--once", is_flag=True, help="Print one look and end.")
@options_from(TopSettings)
def top(once: bool, top_settings: TopSettings) -> None:
    """Watch the queue, pages, hit rate and speed of a server; Ctrl-C ends.

    \b
    Examples:
      minimsg top
      minimsg top --url http://127.0.0.1:9000 --once
    """
    from rich.console import Console

    figures = look(top_settings)
    if once:
        Console(highlight=False).print(table(top_settings.url, figures, None))
    else:
        _watch(top_settings, figures)


def _watch(settings: TopSettings, figures: Figures) -> None:
    from rich.live import Live

    with Live(table(settings.url, figures, None), auto_refresh=False) as live:
        while True:
            time.sleep(settings.interval_s)
            before, figures = figures, look(settings)
            live.update(table(settings.url, figures, rates(before, figures)), refresh=True)


def look(settings: TopSettings) -> Figures:
    """The server's figures as of now. Raises ConfigError: nobody answers, or not as minimsg."""
    import asyncio

    import aiohttp

    url = settings.url.rstrip("/")
    try:
        status, text = asyncio.run(_get(url + "/metrics", settings.api_key))
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise ConfigError(
            f"no server answers at {url}: {why}; start one with `minimsg serve`"
        ) from None
    if status == 401:
        raise ConfigError(f"{url} wants a key: name it with --api-key")
    if status != 200:
        raise ConfigError(f"{url}/metrics: HTTP {status}; is this a minimsg server?")
    try:
        return Figures.read(text, time.monotonic())
    except ConfigError as error:
        raise ConfigError(f"{url} is no minimsg server: {error}") from None


async def _get(url: str, api_key: str | None) -> tuple[int, str]:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    headers = {"x-api-key": api_key} if api_key else {}
    async with (
        aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > MAX_BYTES:
                raise ValueError(f"more than {MAX_BYTES:,} bytes of metrics")
        return response.status, body.decode("utf-8", "replace")


def table(url: str, figures: Figures, lately: Rates | None) -> Table:
    """The figures in rows; without `lately`, the share of hits is that since the start."""
    from rich.markup import escape
    from rich.table import Table

    from minimsg.text.control import escape as printable

    drawn = Table("", "", title=escape(printable(url)), title_justify="left", show_header=False)
    share = lately.hit_share if lately else hit_share(figures)
    pages = sum(figures.pages.values())
    drawn.add_row("requests", f"{figures.running} running, {figures.waiting} waiting")
    drawn.add_row("pages used", _bar(figures.pages["used"], pages))
    drawn.add_row("cached", _bar(figures.pages["cached"], pages))
    drawn.add_row("free", _bar(figures.pages["free"], pages))
    drawn.add_row("pinned", _bar(figures.pinned, pages))
    drawn.add_row("prefix hits", "nothing looked up" if share is None else f"{share:.1%}")
    if lately:
        drawn.add_row("prompt tokens/s", f"{lately.prompt_tokens:,.1f}")
        drawn.add_row("generated tokens/s", f"{lately.generated_tokens:,.1f}")
        drawn.add_row("requests/s", f"{lately.requests:,.1f}")
    drawn.add_row("so far", _totals(figures))
    return drawn


def _bar(number: int, total: int, width: int = 20) -> str:
    filled = round(width * number / total) if total else 0
    return f"{'#' * filled}{'.' * (width - filled)} {number:,} of {total:,}"


def _totals(figures: Figures) -> str:
    return (
        f"{figures.requests:,} requests, {figures.prompt_tokens:,} prompt and "
        f"{figures.generated_tokens:,} generated tokens,\n"
        f"{figures.preemptions:,} preemptions, {figures.restarts:,} restarts"
    )
