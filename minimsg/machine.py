"""Facts about the machine, for `doctor` and for the head of a benchmark report.

Reads the operating system's own files and package metadata; imports no package to
learn its version. What cannot be learned on a platform is None or empty, never guessed.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

PACKAGES = (
    "minimsg",
    "aiohttp",
    "click",
    "jinja2",
    "pydantic",
    "rich",
    "tokenizers",
    "torch",
    "numpy",
    "safetensors",
    "gguf",
    "llguidance",
    "huggingface-hub",
    "transformers",
)
# What makes matrix products fast: x86 names, then Arm names, as Linux spells them.
FEATURES = (
    *("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"),
    *("asimd", "asimddp", "bf16", "i8mm", "sve", "sve2"),
)


@dataclass(frozen=True)
class Machine:
    """The computer that a figure was measured on."""

    python: str
    platform: str
    cpu: str
    cpu_features: list[str]
    cores: int  # that this process may use
    memory_bytes: int | None
    free_memory_bytes: int | None

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def machine() -> Machine:
    """Look at this machine."""
    cpuinfo = _fields(Path("/proc/cpuinfo"))
    meminfo = _fields(Path("/proc/meminfo"))
    flags = (cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()
    return Machine(
        python=platform.python_version(),
        platform=platform.platform(),
        cpu=cpuinfo.get("model name") or platform.processor() or platform.machine(),
        cpu_features=[name for name in FEATURES if name in flags],
        cores=usable_cores(),
        memory_bytes=_kib(meminfo.get("MemTotal")) or _physical_memory(),
        free_memory_bytes=_kib(meminfo.get("MemAvailable")),
    )


def usable_cores() -> int:
    """Cores that this process may run on; a container often allows fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float | None:
    """Runnable processes over the last minute; None where the platform has no such figure."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str | None]:
    """Installed version of each package, None if it is not installed."""
    return {name: _version(name) for name in packages}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fields(file: Path) -> dict[str, str]:
    """The first `name : value` of each name in a file of /proc; empty where there is none."""
    found: dict[str, str] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found


def _kib(value: str | None) -> int | None:
    return int(value.split()[0]) * 1024 if value else None


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
