"""From a model's name to what answers requests, telling the terminal what happens.

Used by `serve`, `run` and `bench --vs`: fetch or convert if need be (`hub`), then load
(`loading.py`, which logs number format, device and kernel, and why others were passed
over). Torch is imported on the way, not before.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from minimsg.config import BY_TEMPLATE, EngineConfig, ParserConfig

if TYPE_CHECKING:
    from minimsg.engine.worker import EngineWorker
    from minimsg.prompt.chat import ChatModel

DEFAULT_MODEL: Final = "smollm2"  # minimsg.hub.DEFAULT, without importing the hub


@dataclass(frozen=True)
class Loaded:
    """A model and the engine thread that will run it, not started yet."""

    chat: ChatModel
    worker: EngineWorker
    load_s: float

    @property
    def facts(self) -> str:
        """What was decided while loading, in two lines."""
        engine = self.worker.engine
        size = engine.runner.cache.num_bytes
        return (
            f"model {self.chat.name} ({self.chat.model_type}) loaded in {self.load_s:.1f} s\n"
            f"window {engine.max_context} tokens; cache {engine.pool.num_pages} pages of "
            f"{EngineConfig.page_size} tokens, {size / 1e6:,.0f} MB"
        )


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


def load_model(
    name: str,
    folder: Path,
    config: EngineConfig,
    max_queue: int,
    parsers: ParserConfig = BY_TEMPLATE,
) -> Loaded:
    """Load the model in `folder`, to be served under a name made of `name`.

    Raises what `load_engine` and `ChatModel.open` raise.
    """
    from minimsg.engine.memory import requested_window
    from minimsg.engine.worker import EngineWorker
    from minimsg.loading import load_engine
    from minimsg.prompt.chat import ChatModel

    start = perf_counter()
    chat = ChatModel.open(folder, served_name(name), parsers)
    requested_window(config.max_context, chat.max_context)  # refused before the weights are read
    worker = EngineWorker(load_engine(folder, config), max_queue)
    return Loaded(chat, worker, perf_counter() - start)


def served_name(source: str) -> str:
    """The id that clients ask for: a path's last part without .gguf, any other name as it is."""
    if not Path(source).exists():
        return source
    return Path(source).resolve().name.removesuffix(".gguf")
