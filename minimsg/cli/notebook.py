"""`minimsg notebook`: the notebooks in a folder of the reader's own, and Jupyter in front of it.

A file that is already there and not as it was written is the reader's work: it is named and
left alone. Knows files and the terminal; what the notebooks say is in `notebooks/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from minimsg.errors import ConfigError
from minimsg.notebooks import MODEL_NAME, paths

JUPYTER: Final = "jupyterlab"


@click.command()
@click.option(
    "--to", "folder", default="minimsg-notebooks", show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder; it is made if it is not there.",
)  # fmt: skip
@click.option(
    "--model",
    default="tiny",
    show_default=True,
    envvar=MODEL_NAME,
    show_envvar=True,
    help="The model that they load; smollm2 makes sense, tiny is there at once.",
)
@click.option("--no-open", is_flag=True, help="Only copy.")
@click.pass_context
def notebook(ctx: click.Context, folder: Path, model: str, no_open: bool) -> None:
    """Copy the notebooks to a folder, each as .ipynb and as .py, and open Jupyter there.

    A file that you have changed stays as you left it; another folder gets fresh ones.

    \b
    Examples:
      minimsg notebook
      minimsg notebook --to lessons --model smollm2
      minimsg notebook --no-open
    """
    from minimsg.hub.extras import require

    require("jupytext", extra="notebook", purpose="to make notebooks")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = [name for name, text in files().items() if not copy(folder / name, text)]
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}") from error
    click.echo(f"{len(paths())} notebooks are in {folder}")
    for name in kept:
        click.echo(f"kept as it is, changed since it was copied: {folder / name}")
    if no_open:
        return
    if find_spec(JUPYTER) is None:
        click.echo(f"To open them: pip install {JUPYTER}, and then this command again")
        return
    command = [sys.executable, "-m", JUPYTER, str(folder)]
    ctx.exit(subprocess.run(command, env={**os.environ, MODEL_NAME: model}).returncode)


def files() -> dict[str, str]:
    """What is copied: each notebook twice, by the name of the file."""
    found = {}
    for path in paths():
        text = path.read_text("utf-8")
        found[path.name] = text
        found[f"{path.stem}.ipynb"] = as_ipynb(text)
    return found


def as_ipynb(text: str) -> str:
    """The script `text` as Jupyter's own format, the same each time: cells are numbered."""
    import jupytext

    notebook = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    written: str = jupytext.writes(notebook, fmt="ipynb")
    return written


def copy(path: Path, text: str) -> bool:
    """Write `path`, unless something else is there; whether it now holds `text`."""
    if path.exists():
        return path.read_text("utf-8") == text
    path.write_text(text, "utf-8")
    return True
