"""The package as a stranger gets it: what is listed, what is built, what a bare install can do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from minimsg.inspector.files import page_files

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages_in_the_tree() -> set[str]:
    """Dotted names of every folder with an `__init__.py`, through the three symlinks."""
    names = set()
    for folder, _, files in os.walk(ROOT / "minimsg", followlinks=True):
        if "__init__.py" in files:
            names.add(".".join(Path(folder).relative_to(ROOT).parts))
    return names


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_every_package_of_the_tree_is_listed() -> None:
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == packages_in_the_tree()


@pytest.mark.parametrize("name", ["models", "kernels", "notebooks"])
def test_the_top_level_folders_are_linked_into_the_package(name: str) -> None:
    link = ROOT / "minimsg" / name
    assert link.is_symlink()
    assert link.resolve() == ROOT / name


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new environment with the base install and nothing else."""
    home = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", home)
    bin_folder = home / ("Scripts" if os.name == "nt" else "bin")
    run(bin_folder / "python", "-m", "pip", "install", "-q", "-c", "constraints.txt", ".")
    return bin_folder


def test_the_base_install_lists_its_commands_without_torch(bare: Path, tmp_path: Path) -> None:
    help_text = run(bare / "minimsg", "--help", cwd=tmp_path)
    for verb in ("serve", "run", "pull", "ls", "show", "doctor", "bench"):
        assert verb in help_text
    absent = "import importlib.util as u; print([n for n in ('torch', 'gguf') if u.find_spec(n)])"
    assert run(bare / "python", "-c", absent, cwd=tmp_path).strip() == "[]"


def test_the_base_install_serves_only_after_saying_what_adds_the_engine(
    bare: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [bare / "minimsg", "serve", "tiny", "--data-dir", tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "minimsg[engine]" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_base_install_holds_the_protocol_half(bare: Path, tmp_path: Path) -> None:
    modules = "minimsg.server.app, minimsg.prompt.render, minimsg.protocol.build"
    run(bare / "python", "-W", "error", "-c", f"import {modules}", cwd=tmp_path)


def test_wheel_and_sdist_hold_every_package(bare: Path, tmp_path: Path) -> None:
    run(bare / "python", "-m", "pip", "install", "-q", "setuptools>=77")
    build = (
        "import sys, setuptools.build_meta as b; folder = sys.argv[1]\n"
        "b.build_sdist(folder); b.build_wheel(folder)"  # each rewrites sys.argv
    )
    run(bare / "python", "-c", build, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    (sdist,) = tmp_path.glob("*.tar.gz")
    shaders = {f"minimsg/kernels/{path.name}" for path in (ROOT / "kernels").glob("*.metal")}
    notebooks = {f"minimsg/notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.py")}
    trained = {
        f"minimsg/tiny_vl/model/{path.name}"
        for path in (ROOT / "minimsg" / "tiny_vl" / "model").iterdir()
    }
    assert "minimsg/tiny_vl/model/model.safetensors" in trained
    page = {f"minimsg/inspector/{name}" for name in page_files()}
    others = shaders | notebooks | trained | page
    inits = {name.replace(".", "/") + "/__init__.py" for name in packages_in_the_tree()}
    assert inits | others <= set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    on_disk = {
        re.sub("^minimsg/(models|kernels|notebooks)/", r"\1/", name) for name in inits | others
    }
    assert on_disk <= names
