"""`minimsg batch`: message batches, at a server (`remote.py` asks it) or without one.

A verb a function; `run` is in `batch_run.py`.
"""

from __future__ import annotations

import click

from minimsg.cli.batch_run import run


@click.group(no_args_is_help=True)
def batch() -> None:
    """Message batches: at any server, or a file of requests answered here.

    \b
    Examples:
      minimsg batch create requests.jsonl --wait
      minimsg batch results msgbatch_01AbC -o results.jsonl
      minimsg batch run requests.jsonl smollm2 -o results.jsonl
    """


batch.add_command(run)
