"""`minimsg serve`: fetch, load, listen, and say how to talk to what listens.

Only the terminal's side: the model is fetched in `startup.py` and loaded in
`server/loading.py`, the server is `server/app.py`.
"""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from minimsg import __version__
from minimsg.cli.logs import LEVELS, configure
from minimsg.cli.options import options_from
from minimsg.cli.startup import DEFAULT_MODEL
from minimsg.config import EngineConfig, ParserConfig, ServerConfig
from minimsg.errors import ConfigError

if TYPE_CHECKING:
    from minimsg.server.auth import Keys

QUESTION = "What is the capital of France?"
YOUR_KEY = "YOUR-KEY"
ANYWHERE = ("0.0.0.0", "[::]")  # where a server may listen and no client can connect to


@click.command()
@click.argument("model", default=DEFAULT_MODEL)
@options_from(ServerConfig)
@options_from(EngineConfig)
@options_from(ParserConfig)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    envvar="MINIMSG_LOG_LEVEL",
    show_envvar=True,
    help="How much is logged; info is a line for each request.",
)
@click.pass_context
def serve(
    ctx: click.Context,
    model: str,
    server_config: ServerConfig,
    engine_config: EngineConfig,
    parser_config: ParserConfig,
    log_level: str,
) -> None:
    """Serve MODEL over the Messages API until Ctrl-C or SIGTERM.

    MODEL is smollm2 (fetched once, 93 MB), tiny-vl (reads images; no download), tiny or
    scripted (no download), a Hugging Face folder, a .gguf file, or ORG/REPO.

    \b
    Examples:
      minimsg serve
      minimsg serve ./Qwen3-0.6B --port 9000 --max-context 4096
      MINIMSG_DTYPE=float32 minimsg serve tiny
      minimsg serve --alias 'claude-*' --keys-file keys.json --host 0.0.0.0
    """
    configure(log_level)
    click.echo(f"minimsg {__version__}")
    keys = _check_callers(server_config)
    _check_port(server_config)
    _check_store(server_config)
    _check_misbehaviour(server_config)
    from minimsg.cli.startup import check_settings, fetch
    from minimsg.server.loading import load_model

    check_settings(engine_config)
    folder = fetch(model, server_config.data_dir)
    max_queue = server_config.max_queue
    loaded = load_model(model, folder, engine_config, max_queue, parser_config)
    click.echo(loaded.facts)

    import asyncio

    from minimsg.server.app import make_app
    from minimsg.server.app import serve as serve_app

    def announce(url: str) -> None:
        click.echo(terms(server_config, keys))
        _announce(url, loaded.chat.name, has_keys=bool(keys))

    app = make_app(loaded.chat, loaded.worker, server_config)
    if server_config.misbehave or server_config.fault:
        from minimsg.cli.misbehaving import serve_wrongly

        ctx.exit(asyncio.run(serve_wrongly(app, server_config, announce)))
    ctx.exit(asyncio.run(serve_app(app, server_config, announce)))


def _check_callers(config: ServerConfig) -> Keys:
    """The keys; raise ConfigError for settings of who may call, not after minutes of fetching."""
    from minimsg.server.auth import open_keys
    from minimsg.server.origin import AllowList

    AllowList.of(config)
    return open_keys(config)


def _check_port(config: ServerConfig) -> None:
    """Raise ConfigError for an address that cannot be had now, not after minutes of fetching."""
    from minimsg.cli.checks import port_is_free

    check = port_is_free(config.port, config.host)
    if not check.ok:
        raise ConfigError(f"cannot listen on {config.host}:{check.found}; {check.remedy}")


def _check_store(config: ServerConfig) -> None:
    """Raise ConfigError for a store that another server has or that is damaged, as early."""
    import asyncio

    from minimsg.server.storage import check_store

    asyncio.run(check_store(config))


def _check_misbehaviour(config: ServerConfig) -> None:
    """Raise ConfigError for a mutant or a fault that there is not, as early."""
    from minimsg.misbehave.catalog import find
    from minimsg.misbehave.faults import parse_faults

    if config.misbehave:
        find(config.misbehave)
    parse_faults(config.fault or "")


def terms(config: ServerConfig, keys: Keys) -> str:
    """Who may ask, for what and how much, in a line; names of tenants, never a key."""
    facts = [
        f"profile {config.profile}",
        f"keys of {', '.join(keys.tenants)}" if keys else "no API keys: anyone may ask",
    ]
    if config.any_model:
        facts.append("answers to any model name")
    elif config.alias:
        facts.append(f"answers to {', '.join(config.alias)} too")
    if config.without:
        facts.append(f"without {', '.join(config.without)}")
    limits = {"requests": config.requests_per_minute, "tokens": config.tokens_per_minute}
    facts += [f"{limit:,} {unit} a minute" for unit, limit in limits.items() if limit]
    return "; ".join(facts)


def _announce(url: str, model: str, *, has_keys: bool) -> None:
    for address in ANYWHERE:
        url = url.replace(f"//{address}:", "//127.0.0.1:")
    click.secho(f"ready: {url}", bold=True)
    click.echo(f"See what it does: {url}/inspect")
    click.echo(f"\nAsk it something:\n\n{curl_command(url, model, has_keys=has_keys)}\n")
    hint = "" if find_spec("anthropic") else " (pip install anthropic)"
    snippet = sdk_snippet(url, model, has_keys=has_keys)
    click.echo(f"Or with the SDK{hint}:\n\n{snippet}\n\nCtrl-C stops.\n")


def curl_command(url: str, model: str, *, has_keys: bool = False) -> str:
    """A command that can be pasted into a shell; with keys, after one is written into it."""
    body = {
        "model": model,
        "max_tokens": 64,
        "temperature": 0,
        "messages": [{"role": "user", "content": QUESTION}],
    }
    key = f"  -H 'x-api-key: {YOUR_KEY}' \\\n" if has_keys else ""
    return (
        f"curl {url}/v1/messages \\\n"
        "  -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \\\n"
        f"{key}"
        f"  -d {shlex.quote(json.dumps(body))}"
    )


def sdk_snippet(url: str, model: str, *, has_keys: bool = False) -> str:
    """A script that can be pasted into Python; with keys, after one is written into it."""
    return f"""\
from anthropic import Anthropic

client = Anthropic(base_url="{url}", api_key="{YOUR_KEY if has_keys else "local"}")
message = client.messages.create(
    model={json.dumps(model)},
    max_tokens=64,
    messages=[{{"role": "user", "content": "{QUESTION}"}}],
)
print(message.content[0].text)"""
