"""One C file to a loaded library, compiled for this very CPU when it is first needed.

Two or three seconds once: the result lies in the user's cache folder under a name that
is the hash of source, flags, compiler and CPU. It is linked with the OpenMP that torch
has loaded, so that both share one pool of threads. Knows no kernel; see `cpu_native.py`.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import platformdirs
import torch

from minimsg.errors import KernelUnavailable

FLAGS: Final = ("-O3", "-march=native", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math")
"""None that lets the compiler reorder arithmetic; it may fuse a product and a sum."""
logger = logging.getLogger(__name__)
TIMEOUT_S: Final = 120.0  # a busy machine; a quiet one takes 3


def load_library(source: Path, flags: tuple[str, ...] = FLAGS) -> ctypes.CDLL:
    """The library made of `source`, compiled now if it was not before.

    Raises KernelUnavailable, with the compiler's first words if it failed.
    """
    compiler = find_compiler()
    text = source.read_bytes()
    key = repr((text, flags, compiler, _version(compiler), _cpu(), torch.__version__))
    name = f"{source.stem}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.so"
    try:
        with _folder() as folder:
            if (folder / name).is_file():
                with suppress(OSError):  # it was cut, or is no library: made anew
                    return ctypes.CDLL(str(folder / name))
            _compile(compiler, source, flags, folder / name)
            return ctypes.CDLL(str(folder / name))
    except OSError as error:
        raise KernelUnavailable(f"its library cannot be stored or loaded: {error}") from error


@contextmanager
def _folder() -> Iterator[Path]:
    """The user's cache; where that cannot be written, a folder that is gone after loading."""
    folder = platformdirs.user_cache_path("minimsg") / "kernels"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="minimsg-") as scratch:
        yield Path(scratch)


def find_compiler() -> list[str]:
    """The command in CC, else `cc`, as a list of words. Raises KernelUnavailable."""
    given = os.environ.get("CC") or "cc"
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise KernelUnavailable(f"CC is {given!r}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise KernelUnavailable(f"there is no C compiler ({' '.join(words)})")
    return words


def _compile(compiler: list[str], source: Path, flags: tuple[str, ...], target: Path) -> None:
    """Written beside its place and moved there whole: two processes may do this at once."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / "made.so"
        command = [*compiler, *flags, "-shared", "-fPIC", "-fopenmp", "-o", str(made), str(source)]
        openmp = torch_openmp()
        # The library by its path comes before the one that -fopenmp names, and satisfies it.
        command += [str(openmp), f"-Wl,-rpath,{openmp.parent}"] if openmp else []
        try:
            done = subprocess.run(
                [*command, "-lm"],
                capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise KernelUnavailable(f"the compiler took more than {TIMEOUT_S:.0f} s") from error
        if done.returncode != 0:
            why = done.stderr.strip() or f"exit status {done.returncode}"
            raise KernelUnavailable(f"{compiler[0]} cannot compile it: {why[:300]}")
        if not made.is_file():
            raise KernelUnavailable(f"{compiler[0]} says that it is done and has made nothing")
        made.replace(target)
        logger.info("compiled %s to %s", source.name, target)


def torch_openmp() -> Path | None:
    """The OpenMP library that came with torch; None if torch uses the system's."""
    package = Path(torch.__file__).parent
    for folder in (package / "lib", package.parent / "torch.libs"):
        for name in ("libgomp", "libiomp5", "libomp"):
            found = [*folder.glob(f"{name}*.so*"), *folder.glob(f"{name}*.dylib")]
            if found:
                return found[0]
    return None


def _version(compiler: list[str]) -> bytes:
    try:
        done = subprocess.run(
            [*compiler, "--version"], capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelUnavailable(f"{compiler[0]} does not say its version: {error}") from error
    return done.stdout


def _cpu() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.platform() + platform.processor()
    kinds = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(kinds)}))
