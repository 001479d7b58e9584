"""What the tests of real clients fetch, each once, into a folder that can outlive them.

MINIMSG_CLIENT_CACHE names the folder; with it a second run needs no network. Each thing
has a folder of its own, which counts only once its last step is done. Where something
cannot be had the test is skipped and says why. Knows pip and npm, not what is tested.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.332"
NODE_SDK = "@anthropic-ai/sdk@1.14.0"
ZOD = "zod@4.6.7"  # schemas, for the helpers of the SDK
PYTHON_SDK = "anthropic==2.14.0"
# What the SDK's tests import beyond the SDK; http-snapshot as its pyproject.toml pins it.
SUITE_NEEDS = (
    "pytest",
    "pytest-asyncio",
    "respx",
    "inline-snapshot",
    "http-snapshot[httpx]==0.1.9",
)
RAY = "ray[data]==2.60.0"
FETCH_S = 600


def claude_code(cache: Path) -> Path:
    """The program `claude`, as npm installs it."""
    return node_packages(cache, CLAUDE_CODE) / "node_modules" / ".bin" / "claude"


def node_packages(cache: Path, *packages: str) -> Path:
    """A folder with `packages` of the npm registry in its node_modules."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing (Node.js brings it)")

    def install(folder: Path) -> None:
        flags = ["--no-audit", "--no-fund", "--no-update-notifier"]
        fetch([npm, "install", "--prefix", str(folder), *flags, *packages])

    return once(cache / "-".join(packages).replace("/", "-"), install)


def sdk_suite(cache: Path) -> Path:
    """A folder with the sdist's tests, and `python`: an environment that can run them."""

    def install(folder: Path) -> None:
        environment = folder / "python"
        fetch([sys.executable, "-m", "venv", str(environment)])
        pip = [str(environment / "bin" / "python"), "-m", "pip"]
        fetch([*pip, "install", "-q", PYTHON_SDK.replace("==", "[aiohttp]=="), *SUITE_NEEDS])
        download = ["download", "-q", "--no-binary", ":all:", "--no-deps", "-d", str(folder)]
        fetch([*pip, *download, PYTHON_SDK])
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")

    return once(cache / PYTHON_SDK.replace("==", "-"), install)


def ray_environment(cache: Path) -> Path:
    """A Python with Ray, the engine's packages and what minimsg itself imports."""

    def install(folder: Path) -> None:
        fetch([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        fetch([*pip, "-c", str(ROOT / "constraints.txt"), RAY, f"{ROOT}[engine]"])
        fetch([str(folder / "bin" / "python"), "-m", "pip", "uninstall", "-q", "-y", "minimsg"])

    return once(cache / RAY.replace("==", "-"), install) / "bin" / "python"


def once(folder: Path, install: Callable[[Path], None]) -> Path:
    """`folder`, filled by `install` unless an earlier run has filled it to the end."""
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(folder)
        complete.touch()
    return folder


def fetch(command: list[str]) -> None:
    """Run `command`; the test is skipped with its last words if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=FETCH_S
    )
    if done.returncode != 0:
        words = " ".join(done.stdout.split())[-300:]
        pytest.skip(f"{Path(command[0]).name} cannot fetch {command[-1]}: {words}")
