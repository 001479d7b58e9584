"""An emulated Apple GPU for the tests of `metal_paged`: one a run, a shader is compiled once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .metal.emulator import Emulator, forward, why_not


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Emulator:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return Emulator(tmp_path_factory.mktemp("metal"))


@pytest.fixture
def emulator(compiled: Emulator) -> Iterator[Emulator]:
    yield compiled
    compiled.order, compiled.removed_line = forward, 0
