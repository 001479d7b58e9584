"""`minimsg pull`: bring a model onto this machine, once, or check one that is here."""

from __future__ import annotations

from pathlib import Path

import click

from minimsg.cli.data_dir import data_dir_option


@click.command(no_args_is_help=True)
@click.argument("name")
@data_dir_option
@click.option("--verify", is_flag=True, help="Also hash the files of a model that is here.")
def pull(name: str, data_dir: Path | None, verify: bool) -> None:
    """Fetch or convert the model NAME and print where it lies.

    NAME is smollm2 (the default model), tiny-vl (reads images; in the package), tiny or
    scripted (made on the spot), a Hugging Face folder (checked and used in place), a .gguf
    file (converted), or ORG/REPO on the Hugging Face hub. A model that is here and whole is
    not fetched again.

    \b
    Examples:
      minimsg pull smollm2
      minimsg pull ./Qwen3-0.6B-Q8_0.gguf
      minimsg pull Qwen/Qwen3-0.6B
      minimsg pull --verify smollm2
    """
    from minimsg import hub
    from minimsg.cli.naming import explained
    from minimsg.cli.progress import progress_bar

    with explained(name), progress_bar() as progress:
        folder = hub.pull(name, data_dir, progress, verify=verify)
    click.echo(folder)
