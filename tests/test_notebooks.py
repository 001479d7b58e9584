"""Every notebook runs from top to bottom on the built-in model, without an error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.py"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # of Jupyter's own machinery
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jupytext
    from nbclient import NotebookClient

    monkeypatch.setenv("MINIMSG_DATA_DIR", str(tmp_path))
    notebook = jupytext.read(path)
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        printed = [each.text for each in outputs if each.get("name") == "stdout"]
        assert cell.cell_type != "code" or "".join(printed).strip(), (
            f"prints nothing: {cell.source}"
        )


def test_the_tour_numbers_fourteen_stages_and_has_a_cell_for_each() -> None:
    (tour,) = [path for path in NOTEBOOKS if path.stem == "00_tour"]
    cells = tour.read_text().split("# %%")
    numbers = [re.findall(r"^# \*\*(\d+)\.", cell, re.M) for cell in cells]
    assert [number for each in numbers for number in each] == [str(n) for n in range(1, 15)]
    assert all(len(each) <= 1 for each in numbers)
    for place, each in enumerate(numbers):
        assert not each or not cells[place + 1].startswith(" [markdown]")
