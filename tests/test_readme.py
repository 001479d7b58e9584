"""The README says what is true: its commands, its tree, its Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def command(name: str) -> str:
    """The shell line of the block after `<!-- command: NAME -->`."""
    found = re.search(rf"<!-- command: {name} -->\n```sh\n(.*?)\n```", README, re.S)
    assert found, f"no command {name!r} in the README"
    return found.group(1)


def tree_paths() -> list[str]:
    """Every path drawn in the annotated tree, folders ending in a slash."""
    (block,) = re.findall(r"<!-- tree -->\n```text\n(.*?)\n```", README, re.S)
    paths: list[str] = []
    folder = [""]  # by depth
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        del folder[depth + 1 :]
        name = line.split()[0]
        paths.append(folder[depth] + name)
        folder.append(folder[depth] + name)
    return paths


@pytest.mark.parametrize("path", tree_paths())
def test_what_the_tree_draws_exists(path: str) -> None:
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


def test_the_tree_draws_every_package() -> None:
    packages = {f"{init.parent.relative_to(ROOT)}/" for init in ROOT.glob("minimsg/*/__init__.py")}
    linked = {f"minimsg/{name}/": f"{name}/" for name in ("models", "kernels", "notebooks")}
    assert {linked.get(package, package) for package in packages} <= set(tree_paths())


def test_both_commands_install_with_the_pins_and_then_do_the_job() -> None:
    for name, job in (("serve", "minimsg serve"), ("test", "pytest")):
        install, _, rest = command(name).partition("&&")
        words = shlex.split(install)
        assert words[:2] == ["pip", "install"]
        assert words[words.index("-c") + 1] == "constraints.txt"
        assert job in rest


@pytest.mark.parametrize("name", ["library", "hooks"])
def test_a_snippet_runs(name: str) -> None:
    (snippet,) = re.findall(rf"<!-- snippet: {name} -->\n```python\n(.*?)\n```", README, re.S)
    exec(compile(snippet.replace('"smollm2"', '"tiny"'), "README.md", "exec"), {})
