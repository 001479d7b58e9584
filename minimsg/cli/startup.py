"""Before a model is loaded: are settings and packages such that one could run, and where is it?

Used by `serve`, `run`, `bench` and `batch run`. `fetch` pulls or converts if need be (`hub`) and
shows a bar on the terminal. Torch is imported on the way, not before. Next: `server/loading.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minimsg.config import EngineConfig

DEFAULT_MODEL: Final = "smollm2"  # minimsg.hub.DEFAULT, without importing the hub


def require_engine() -> None:
    """Raise ConfigError, with the command that adds them, without the packages of the engine."""
    from minimsg.hub.extras import require

    require("torch", extra="engine", purpose="to run a model")


def check_settings(config: EngineConfig) -> None:
    """Refuse what no model could run with, before one is fetched or loaded.

    Raises ConfigError; `load_model` checks what depends on the model.
    """
    require_engine()
    from minimsg.engine.memory import parse_memory
    from minimsg.loading import choose_device

    choose_device(config.device)
    parse_memory(config.kv_memory, free=0)


def fetch(name: str, data_dir: Path | None) -> Path:
    """The folder of the model, pulled if it is not here; a bar shows how far that is.

    Raises what `require_engine` and `hub.ensure` raise.
    """
    require_engine()
    from minimsg import hub
    from minimsg.cli.naming import explained
    from minimsg.cli.progress import progress_bar

    with explained(name), progress_bar() as progress:
        return hub.ensure(name, data_dir, progress)
