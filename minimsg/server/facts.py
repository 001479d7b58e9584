"""What computes here, as records name it: two machines that agree in this give the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minimsg import __version__
from minimsg.kernels import INVARIANT
from minimsg.machine import machine, versions
from minimsg.trace import EngineFacts

if TYPE_CHECKING:
    from minimsg.engine.engine import Engine

WEIGHTS: Final = ("config.json", "*.safetensors", "*.gguf")
CHUNK_BYTES: Final = 1 << 20


def engine_facts(engine: Engine, folder: Path) -> EngineFacts:
    """Of an engine for the model in `folder`, all of which is read the first time."""
    import torch

    config = engine.config
    found = machine()
    return EngineFacts(
        minimsg=__version__,
        torch=versions(["torch"])["torch"] or "",
        cpu=" ".join([found.cpu, *found.cpu_features]),
        device=config.device,
        kernel=config.kernel or "",
        dtype=config.dtype,
        weights=weights_digest(folder),
        threads=torch.get_num_threads(),
        page_size=config.page_size,
        max_context=engine.max_context,
        deterministic=config.deterministic,
        speculate=config.speculate,
        is_batch_invariant=config.kernel in INVARIANT,
    )


def weights_digest(folder: Path) -> str:
    """SHA-256 of the files that the model in `folder` is loaded from, in hex."""
    return _digest(tuple(_stamps(folder)))


def _stamps(folder: Path) -> Iterator[tuple[Path, int, int]]:
    from minimsg.models.kept import FILE as KEPT  # which imports torch

    for pattern in WEIGHTS:
        for file in sorted(folder.glob(pattern)):
            if file.name != KEPT:  # made of the others
                facts = file.stat()
                yield file, facts.st_size, facts.st_mtime_ns


@cache
def _digest(stamps: tuple[tuple[Path, int, int], ...]) -> str:
    whole = sha256()
    for file, size, _ in stamps:
        whole.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as opened:
            while piece := opened.read(CHUNK_BYTES):
                whole.update(piece)
    return whole.hexdigest()
