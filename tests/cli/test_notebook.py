"""`minimsg notebook`: fresh copies where nothing is, and nobody's work overwritten."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from minimsg.cli import notebook
from minimsg.cli.main import main
from minimsg.notebooks import MODEL_NAME, paths


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["notebook", *map(str, arguments)])


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """The commands that were run, each with the model that it was told of; none really is."""
    commands: list[tuple[list[str], str]] = []

    def pretend(command: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
        commands.append((command, env[MODEL_NAME]))
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", pretend)
    return commands


def with_jupyter(monkeypatch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    monkeypatch.setattr(notebook, "JUPYTER", "json" if is_there else "no_such_module")


def test_each_notebook_is_copied_in_both_forms_with_the_same_cells(tmp_path: Path) -> None:
    assert run("--to", tmp_path / "new" / "lessons", "--no-open").exit_code == 0
    copied = tmp_path / "new" / "lessons"
    stems = [path.stem for path in paths()]
    assert {path.name for path in copied.iterdir()} == {
        f"{stem}{form}" for stem in stems for form in (".py", ".ipynb")
    }
    for path in paths():
        assert (copied / path.name).read_text("utf-8") == path.read_text("utf-8")
        cells = json.loads((copied / f"{path.stem}.ipynb").read_text("utf-8"))["cells"]
        assert "".join(cells[0]["source"]).startswith(f"# {path.stem[:2]} ")
        assert path.read_text("utf-8").count("\n# %%") == len(cells)


def test_a_second_copy_changes_nothing_and_says_nothing_of_it(tmp_path: Path) -> None:
    run("--to", tmp_path, "--no-open")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    result = run("--to", tmp_path, "--no-open")
    assert result.output == f"{len(paths())} notebooks are in {tmp_path}\n"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_what_the_reader_has_changed_stays_and_is_named(tmp_path: Path) -> None:
    run("--to", tmp_path, "--no-open")
    mine = tmp_path / "00_tour.ipynb"
    mine.write_text("my own words", "utf-8")
    (tmp_path / "00_tour.py").unlink()
    result = run("--to", tmp_path, "--no-open")
    assert mine.read_text("utf-8") == "my own words"
    assert f"kept as it is, changed since it was copied: {mine}\n" in result.output
    assert (tmp_path / "00_tour.py").exists()


def test_jupyter_is_opened_with_the_model_and_its_exit_code_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[tuple[list[str], str]]
) -> None:
    with_jupyter(monkeypatch, is_there=True)
    assert run("--to", tmp_path, "--model", "smollm2").exit_code == 3
    assert opened == [([sys.executable, "-m", "json", str(tmp_path)], "smollm2")]


def test_without_jupyter_one_command_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[tuple[list[str], str]]
) -> None:
    with_jupyter(monkeypatch, is_there=False)
    result = run("--to", tmp_path)
    assert result.exit_code == 0
    assert "pip install no_such_module, and then this command again" in result.output
    assert not opened


def test_without_the_extra_the_command_that_adds_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minimsg.hub.extras.find_spec", lambda name: None)
    result = run("--to", tmp_path)
    assert result.exit_code == 2
    assert "pip install 'minimsg[notebook]'" in result.output


def test_a_folder_that_cannot_be_written_is_refused_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("--to", tmp_path / "file" / "below", "--no-open")
    assert result.exit_code == 2
    assert "cannot write to" in result.output
