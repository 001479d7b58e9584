"""Weights that a kernel has quantized and packed, kept beside the model for the next start.

`int8.safetensors` holds them as they lie in memory, so a second start maps the file where
the first one read and rounded every matrix. It belongs to the weight files that it was made
from and to one kernel's order; whatever does not fit is made again. Only folders that
minimsg itself has made (they have its manifest) get one: others are somebody else's. How a
weight is quantized is the kernel's business (`quantize` in `kernels/cpu_native.py`).
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from zlib import crc32

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

FILE: Final = "int8.safetensors"
MANIFEST: Final = "minimsg.json"  # see hub/store.py

logger = logging.getLogger("minimsg")


def read_packed(folder: Path, files: Iterable[Path], order: str) -> dict[str, Tensor]:
    """Packed weights by the name of their module, mapped; empty if there are none that fit."""
    if not (folder / FILE).is_file():
        return {}
    try:
        with safe_open(folder / FILE, framework="pt", device="cpu") as kept:
            packed = {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118
            if kept.metadata() != _metadata(files, order, packed):
                logger.info("%s is not of these weights and this kernel; it is made anew", FILE)
                return {}
            return packed
    except (OSError, SafetensorError) as error:
        logger.warning("%s cannot be read (%s); it is made anew", folder / FILE, error)
        return {}


def keep_packed(
    folder: Path, files: Iterable[Path], order: str, packed: Mapping[str, Tensor]
) -> None:
    """Write the file whole or not at all; a folder that cannot be written is only logged."""
    if not (folder / MANIFEST).exists():
        return
    scratch = None
    try:
        handle, scratch = tempfile.mkstemp(dir=folder, prefix=".int8-")
        os.close(handle)
        save_file(dict(packed), scratch, metadata=_metadata(files, order, packed))
        os.chmod(scratch, (folder / MANIFEST).stat().st_mode)  # as its neighbours
        os.replace(scratch, folder / FILE)
    except (OSError, SafetensorError) as error:
        logger.warning("%s cannot be kept (%s); the next start quantizes again", FILE, error)
        if scratch is not None:
            Path(scratch).unlink(missing_ok=True)


def _metadata(files: Iterable[Path], order: str, packed: Mapping[str, Tensor]) -> dict[str, str]:
    """What it belongs to: the weight files as they are now, the kernel's order; its checksums."""
    facts = {file.name: file.stat() for file in sorted(files)}
    sources = [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in facts.items()]
    sums = [f"{name} {crc32(packed[name].numpy().tobytes())}" for name in sorted(packed)]
    return {"order": order, "sources": "\n".join(sources), "sums": "\n".join(sums)}
