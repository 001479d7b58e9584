"""The weights of a folder, seen from headers: which files, which tensors in each.

One safetensors file, or shards with an index that says which tensor lies in which.
Reads no weights and needs no torch. Formats that can run code (`.bin`, `.pt`;
CVE-2025-32434) are refused, not skipped. A file's own header: `tensors.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from minimsg.errors import CheckpointError
from minimsg.fields import Fields
from minimsg.models.tensors import TensorHeader, read_header
from minimsg.models.vision_parameters import plain_name

SINGLE_FILE: Final = "model.safetensors"
INDEX_FILE: Final = "model.safetensors.index.json"
PICKLED: Final = (".bin", ".pt", ".pt2", ".pth", ".ckpt")

Headers = dict[str, TensorHeader]  # by the tensor's name


def weight_files(folder: Path) -> dict[Path, Headers]:
    """Each file of the folder with the tensors in it that the model may need, by plain names.

    Raises:
        CheckpointError: a file is missing or broken, or the index and the shards disagree.
    """
    if (folder / SINGLE_FILE).is_file():
        files = {folder / SINGLE_FILE: read_header(folder / SINGLE_FILE)}
    elif (folder / INDEX_FILE).is_file():
        files = _shards(folder / INDEX_FILE)
    else:
        raise CheckpointError(folder, _seen_instead(folder), f"{SINGLE_FILE} or {INDEX_FILE}")
    return {file: _needed(file, headers) for file, headers in files.items()}


def _needed(file: Path, headers: Headers) -> Headers:
    needed: Headers = {}
    for name, header in headers.items():
        if (plain := plain_name(name)) in needed:
            raise CheckpointError(file, f"{name} is there twice", "one spelling of its name")
        if not _is_spare(name):
            needed[plain] = header
    return needed


def _shards(index: Path) -> dict[Path, Headers]:
    """The shards that an index names: each beside it, each with just the tensors listed."""
    places = Fields.from_file(index).nested("weight_map").data
    files: dict[Path, Headers] = {}
    for shard in sorted({_plain_name(index, shard) for shard in places.values()}):
        file = index.parent / shard
        if not os.path.isfile(file):  # unlike Path.is_file, no error for a name that is too long
            raise CheckpointError(file, "missing", f"a shard listed in {INDEX_FILE}")
        files[file] = read_header(file)
        listed = {name for name, place in places.items() if place == shard}
        if difference := listed ^ files[file].keys():
            seen = f"{min(difference)} is only in one of shard and {INDEX_FILE}"
            raise CheckpointError(file, seen, "the same tensors in both")
    return files


def _plain_name(index: Path, shard: object) -> str:
    """A file beside the index, not a path that leads elsewhere."""
    if not isinstance(shard, str) or Path(shard).name != shard:
        raise CheckpointError(index, f"the shard {shard!r}", "the name of a file beside it")
    return shard


def _seen_instead(folder: Path) -> str:
    pickled = sorted(file.name for file in folder.iterdir() if file.suffix in PICKLED)
    return f"weights only as {', '.join(pickled)}" if pickled else "no weights"


def _is_spare(name: str) -> bool:
    """What some exporters write though the config says it all: rotation tables."""
    return name.endswith(".rotary_emb.inv_freq")
