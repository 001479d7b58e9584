"""The `--data-dir` flag of the commands that only look at models."""

from __future__ import annotations

from pathlib import Path

import click

data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="MINIMSG_DATA_DIR",
    show_envvar=True,
    help="Folder for models; default is the platform's user data folder.",
)
