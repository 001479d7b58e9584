"""The log as it was: a command sends it to its own terminal, which ends with the test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _same_log_afterwards() -> Iterator[None]:
    level = logging.root.level
    yield
    logging.root.setLevel(level)
    for handler in [*logging.root.handlers]:
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)
