"""A server that several tests ask, and the log as it was before a command took it."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Iterator

import pytest

from .process import MINIMSG, Serving, read_until


@pytest.fixture(autouse=True)
def _same_log_afterwards() -> Iterator[None]:
    """A command's log goes to its own terminal, which ends with the test."""
    level = logging.root.level
    yield
    logging.root.setLevel(level)
    for handler in [*logging.root.handlers]:
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    data_dir = tmp_path_factory.mktemp("data")
    command = [*MINIMSG, "serve", "scripted", "--port", "0", "--data-dir", str(data_dir)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield Serving(process, read_until(process, "Ctrl-C stops."))
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=30)
        assert process.returncode == 0, rest.decode()
    finally:
        process.kill()
        process.wait()
