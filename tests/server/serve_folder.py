"""A server in a process of its own, for tests that send it signals.

    python serve_folder.py FOLDER DRAIN_TIMEOUT_S [STEPS_UNTIL_DEATH]

Prints its URL when it listens. An engine that fails a second time is not started again.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

from minimsg.config import EngineConfig, ServerConfig
from minimsg.engine.engine import Engine
from minimsg.engine.restarts import Restarts
from minimsg.engine.types import Output
from minimsg.engine.worker import EngineWorker
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app, serve


def main(folder: Path, drain_timeout_s: float, steps_until_death: int | None) -> int:
    """Serve until a signal; the exit code."""
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=1_024, threads=1))
    if steps_until_death is not None:
        die_after(steps_until_death, engine)
    worker = EngineWorker(engine, max_queue=64, restarts=Restarts(max_failures=2))
    config = ServerConfig(port=0, no_store=True, drain_timeout_s=drain_timeout_s)
    app = make_app(ChatModel.open(folder, "scripted"), worker, config)
    return asyncio.run(serve(app, config, partial(print, flush=True)))


def die_after(num_steps: int, engine: Engine) -> None:
    """Let every step after `num_steps` be the end of the engine, not only of a request."""
    step, left = engine.step, num_steps

    def dying() -> list[Output]:
        nonlocal left
        left -= 1
        if left < 0:
            raise MemoryError("no engine survives this")
        return step()

    engine.step = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    folder, drain_s, *steps = sys.argv[1:]
    sys.exit(main(Path(folder), float(drain_s), int(steps[0]) if steps else None))
