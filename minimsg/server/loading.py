"""From a model's folder to what a `Server` is made of: the side of prompts, the engine's thread.

Used by `serve`, `run`, `batch run` and workers of Ray; that the model is in the folder is the
caller's care (`hub`). Torch is imported on the way, not before; what is decided about number
format, device and kernel is decided and logged in `minimsg/loading.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from minimsg.config import BY_TEMPLATE, EngineConfig, ParserConfig

if TYPE_CHECKING:
    from minimsg.engine.worker import EngineWorker
    from minimsg.prompt.chat import ChatModel


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
