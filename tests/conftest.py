"""What every test shares: where the real data lies, and one thread for torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("untimed", deadline=None)  # what a busy machine does is no failure
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder with recordings and real tokenizers; where it is absent, skip and say so."""
    folder = os.environ.get("MINIMSG_TEST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("MINIMSG_TEST_DATA does not name a folder with recordings and tokenizers")
    return Path(folder)
