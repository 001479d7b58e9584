"""From a model's name to what answers requests, telling the terminal what happens.

Used by `serve`, `run` and `bench --vs`: fetch or convert if need be (`hub`), then load
(`load.py`). Torch is imported on the way, not before.
"""

from __future__ import annotations

from pathlib import Path


def fetch(name: str, data_dir: Path | None) -> Path:
    """The folder of the model, pulled if it is not here; a bar shows how far that is.

    Raises ConfigError if the packages that run a model are not installed.
    """
    from minimsg import hub
    from minimsg.cli.progress import progress_bar
    from minimsg.hub.extras import require

    require("torch", extra="engine", purpose="to run a model")
    with progress_bar() as progress:
        return hub.ensure(name, data_dir, progress)
