"""Every notebook runs from top to bottom on the built-in models, offline, and is made to teach.

One kernel runs them all, each in an empty namespace: to import torch takes longer than most of
them do. It can reach nothing but this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minimsg.notebooks import MODEL_NAME, paths

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parent.parent
MAX_CELLS = 20
CELL_S = 60
OFFLINE = """
import sys

def refuse(event, args, here=("127.0.0.1", "::1", "localhost", None)):
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in here:
        raise OSError(f"a notebook connects to {args[1]}")
    if event == "socket.getaddrinfo" and args[0] not in here:
        raise OSError(f"a notebook looks for {args[0]}")

sys.addaudithook(refuse)
"""
ANEW = """
import torch

torch.set_grad_enabled(True)
get_ipython().run_line_magic('reset', '-f')
"""
ABSOLUTE_PATH = re.compile(r"(?<![\w.}>/])(?!/v1/)(?:~?/(?:[a-z]\w*/)+|[A-Z]:\\)")
NETWORK = re.compile(r"https?://(?!127\.0\.0\.1)|pip install|^[!%]", re.M)

Run = Callable[["NotebookNode"], None]

pytestmark = pytest.mark.filterwarnings("default")  # of Jupyter's own machinery
each_notebook = pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)


def read(text: str) -> NotebookNode:
    import jupytext

    notebook: NotebookNode = jupytext.reads(text, fmt="py:percent")
    return notebook


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs a notebook's cells in an empty namespace; raises what the first bad one raises."""
    from nbclient import NotebookClient

    folder = tmp_path_factory.mktemp("notebooks")
    client = NotebookClient(read(""), timeout=CELL_S)
    client.resources = {"metadata": {"path": str(folder)}}

    def execute(notebook: NotebookNode) -> None:
        client.nb = notebook
        client.reset_execution_trackers()
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)

    def run_one(notebook: NotebookNode) -> None:
        execute(read(f"# %%{ANEW}"))
        execute(notebook)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINIMSG_DATA_DIR", str(folder))
        patch.delenv(MODEL_NAME, raising=False)
        with client.setup_kernel():
            execute(read(f"# %%{OFFLINE}"))
            yield run_one


@each_notebook
def test_the_notebook_runs_and_each_cell_shows_something(path: Path, run: Run) -> None:
    notebook = read(path.read_text("utf-8"))
    run(notebook)
    silent = [cell.source for cell in notebook.cells if not cell.get("outputs", ["markdown"])]
    assert not silent


def test_a_cell_that_raises_fails_its_notebook(run: Run) -> None:
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(read("# %%\n1 / 0\n"))


def test_a_notebook_sees_nothing_of_the_one_before(run: Run) -> None:
    from nbclient.exceptions import CellExecutionError

    run(read("# %%\nleft_over = 1\n"))
    with pytest.raises(CellExecutionError, match="NameError"):
        run(read("# %%\nprint(left_over)\n"))


def test_a_notebook_that_leaves_the_machine_fails(run: Run) -> None:
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError, match="a notebook connects to"):
        run(read("# %%\nimport socket\nsocket.create_connection(('192.0.2.1', 80))\n"))
    with pytest.raises(CellExecutionError, match="a notebook looks for"):
        run(read("# %%\nimport socket\nsocket.create_connection(('example.org', 80))\n"))


@each_notebook
def test_the_notebook_has_an_aim_two_questions_and_something_to_change(path: Path) -> None:
    cells = read(path.read_text("utf-8")).cells
    first, last = cells[0].source, cells[-1].source
    assert len(cells) <= MAX_CELLS
    assert first.startswith(f"# {path.stem[:2]} ")
    assert "**After this you can**" in first
    questions = re.findall(
        r"^\*\*\d\.\*\* .+?\?\n<details><summary>Answer</summary>\n.+?\n</details>$",
        last,
        re.M | re.S,
    )
    assert len(questions) == 2
    assert last.split("\n\n")[-1].startswith("**Change something.** ")


@each_notebook
def test_the_notebook_names_no_place_outside_its_folder(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not ABSOLUTE_PATH.findall(text)
    assert not NETWORK.findall(text)


@each_notebook
def test_the_readme_has_the_notebook_in_its_table(path: Path) -> None:
    assert f"| {path.stem[:2]} | " in (ROOT / "README.md").read_text("utf-8")


def test_notebooks_are_numbered_from_00_and_kept_without_their_output() -> None:
    assert [path.name[:3] for path in paths()] == [f"{n:02}_" for n in range(len(paths()))]
    assert not list((ROOT / "notebooks").glob("*.ipynb"))


def test_the_tour_has_a_cell_for_each_of_fourteen_stages() -> None:
    tour = read(paths()[0].read_text("utf-8"))
    numbers = [re.findall(r"^# (\d+)\. ", c.source, re.M) for c in tour.cells if "outputs" in c]
    assert [number for each in numbers for number in each] == [str(n) for n in range(1, 15)]
    assert all(len(each) <= 1 for each in numbers)
