"""A small .gguf file, and a data folder that is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..models.gguf_files import random_model, write_gguf  # noqa: TID252 tests have no absolute name


@pytest.fixture(scope="session")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small llama as a .gguf file."""
    file = tmp_path_factory.mktemp("gguf") / "small.gguf"
    write_gguf(file, random_model("llama"), metadata={"general.license": "mit"})
    return file


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


def names_in(data_dir: Path) -> list[str]:
    """Everything in the models folder, staging folders included."""
    return sorted(path.name for path in (data_dir / "models").iterdir())
