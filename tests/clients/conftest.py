"""Servers as users start them, and the folder for what the clients need.

`serve` starts `minimsg serve` as a process of its own; it ends with the test.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..cli.process import MINIMSG, Serving, read_until  # noqa: TID252 tests have no absolute name

Serve = Callable[..., Serving]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where fetched clients lie: MINIMSG_CLIENT_CACHE, or a folder for this run."""
    named = os.environ.get("MINIMSG_CLIENT_CACHE")
    return Path(named) if named else tmp_path_factory.mktemp("clients")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve("tiny", "--any-model")`: that command on a free port, ready to be asked."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(model: str | Path, *flags: str) -> Serving:
        # Warnings only: nobody reads the pipe once the server is ready.
        quiet = ["--port", "0", "--log-level", "warning", "--no-store"]
        process = subprocess.Popen(
            [*MINIMSG, "serve", str(model), *quiet, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        processes.append(process)
        return Serving(process, read_until(process, "Ctrl-C stops."))

    yield start
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.communicate(timeout=30)
        finally:
            process.kill()
