"""`minimsg replay`: compute a recorded request again, and say whether it comes out the same.

Records are written by `minimsg run --trace` and given by GET /minimsg/traces/{id}. What is
computed is in `offline/replay.py`, what is said of it in `offline/compared.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from minimsg.cli.data_dir import data_dir_option
from minimsg.cli.startup import require_engine
from minimsg.errors import InvalidTrace, MinimsgError
from minimsg.limits import LIMITS
from minimsg.text.control import escape

if TYPE_CHECKING:
    from minimsg.trace import Trace


@click.command()
@click.argument("record", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--model", metavar="MODEL", help="Model to compute with; default is the record's.")
@click.option("--diff", is_flag=True, help="Show every token, recorded and now.")
@data_dir_option
@click.pass_context
def replay(
    ctx: click.Context, record: Path, model: str | None, diff: bool, data_dir: Path | None
) -> None:
    """Compute RECORD again and compare, token by token.

    RECORD is a file from `minimsg run --trace FILE` or GET /minimsg/traces/ID. Exit code 0: the
    same tokens; 1: others, with what may be why; 2: it could not be computed.

    \b
    Examples:
      minimsg replay record.json
      minimsg replay record.json --diff --model ./Qwen3-0.6B
    """
    require_engine()
    from minimsg.trace import from_json

    try:
        trace = from_json(_read(record))
        is_same = _compare(trace, model, data_dir, diff=diff)
    except MinimsgError as error:  # it may quote the record
        raise InvalidTrace(f"{escape(str(record))}: {escape(str(error))}") from error
    ctx.exit(0 if is_same else 1)


def _read(file: Path) -> bytes:
    """What is in `file`, if it can be a record. Raises InvalidTrace."""
    try:
        with file.open("rb") as opened:
            return opened.read(LIMITS.trace_bytes + 1)  # one too many is seen to be too many
    except OSError as error:
        raise InvalidTrace(error.strerror or "cannot be read") from error


def _compare(trace: Trace, model: str | None, data_dir: Path | None, *, diff: bool) -> bool:
    """Whether the tokens are the same; all is printed. Raises MinimsgError."""
    from minimsg import hub
    from minimsg.offline.compared import Compared
    from minimsg.offline.replay import load, replay

    name = model or trace.model
    loaded, passed_over = load(trace, name, hub.resolve(name, data_dir))  # fetches nothing
    compared = Compared(trace, replay(trace, loaded), loaded.chat.tokenizer, passed_over)
    if diff:
        for line in compared.diff():
            click.echo(line)
    click.echo(f"{escape(trace.id)}: {compared.verdict()}")
    for reason in compared.reasons():
        click.echo(f"  {reason}")
    return compared.is_same
