"""A server that keeps its batches, in a process of its own, for tests that kill it.

    python serve_store.py FOLDER DATA_DIR

Prints its URL when it listens.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

from minimsg.config import EngineConfig, ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app, serve


def main(folder: Path, data_dir: Path) -> int:
    """Serve until a signal; the exit code."""
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=1_024, threads=1))
    config = ServerConfig(port=0, data_dir=data_dir, drain_timeout_s=1)
    app = make_app(ChatModel.open(folder, "tiny"), EngineWorker(engine, max_queue=64), config)
    return asyncio.run(serve(app, config, partial(print, flush=True)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
