"""The notebooks as files, in reading order: percent scripts, which Jupytext turns into `.ipynb`.

Each imports the real code and copies none. `00_tour.py` first; 00 to 07 are a day's course.
`minimsg notebook` copies them to a folder (`minimsg/cli/notebook.py`); all of them run in the
tests on the built-in models (`tests/notebooks/`). Imports nothing, not even its notebooks.
"""

from __future__ import annotations

from pathlib import Path

MODEL_NAME = "MINIMSG_NOTEBOOK_MODEL"
"""The environment name of the model that they load."""


def paths() -> list[Path]:
    """The notebooks in reading order."""
    return sorted(Path(__file__).parent.glob("[0-9]*.py"))
