"""A server that keeps its batches, in a process of its own, for tests that kill it.

    python serve_store.py FOLDER DATA_DIR [MAX_TOKENS]

Prints its URL when it listens. Dies of the first request with that `max_tokens`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from minimsg.config import EngineConfig, ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app, serve


def main(folder: Path, data_dir: Path, deadly: int | None) -> int:
    """Serve until a signal; the exit code."""
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=1_024, threads=1))
    config = ServerConfig(port=0, data_dir=data_dir, drain_timeout_s=1)
    worker = EngineWorker(engine, max_queue=64)
    if deadly is not None:
        die_of(deadly, worker)
    app = make_app(ChatModel.open(folder, "tiny"), worker, config)
    return asyncio.run(serve(app, config, partial(print, flush=True)))


def die_of(max_tokens: int, worker: EngineWorker) -> None:
    """Let a request of that length be the end of the process."""
    submit = worker.submit

    async def deadly(request: Any) -> Any:
        if request.max_tokens == max_tokens:
            os._exit(9)
        return await submit(request)

    worker.submit = deadly  # type: ignore[method-assign]


if __name__ == "__main__":
    model, kept, *lengths = sys.argv[1:]
    sys.exit(main(Path(model), Path(kept), int(lengths[0]) if lengths else None))
