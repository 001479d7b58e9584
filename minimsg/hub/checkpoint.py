"""Whether a folder holds a model that minimsg can load, seen from headers alone.

Used before a folder is served in place and after one is downloaded: config.json, a
tokenizer, and safetensors whose names and shapes are those that the config asks for.
Reads no weights and needs no torch. Formats that can run code (`.bin`, `.pt`) are
refused, not skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from minimsg.errors import CheckpointError
from minimsg.models.parameters import parameter_shapes, refuse_difference
from minimsg.models.tensors import TensorHeader, read_header

INDEX: Final = "model.safetensors.index.json"
PICKLES: Final = ("*.bin", "*.pt", "*.pth", "*.pt2", "*.ckpt")
WEIGHTLESS: Final = {"scripted"}


def check_folder(folder: Path) -> None:
    """Refuse a folder that could not be served.

    Raises:
        CheckpointError: a file is missing, broken, or does not fit the config.
        UnsupportedModel: a model family that is not ours.
    """
    config = read_config(folder)
    read_json(folder / "tokenizer.json", expected="the tokenizer in the `tokenizers` format")
    if config.get("model_type") in WEIGHTLESS:
        return
    expected = parameter_shapes(config, folder / "config.json")
    seen = {name: header.shape for name, header in tensor_headers(folder).items()}
    for name in seen.keys() - expected.keys():
        if _is_redundant(name):
            del seen[name]
    refuse_difference(folder, seen, expected)


def read_config(folder: Path) -> Mapping[str, object]:
    """config.json as it is."""
    return read_json(folder / "config.json", expected="a Hugging Face model folder")


def tensor_headers(folder: Path) -> dict[str, TensorHeader]:
    """Every tensor of the folder's safetensors, in one file or in shards.

    Raises:
        CheckpointError: a file is missing or broken, or the index and the shards disagree.
    """
    index = folder / INDEX
    if not index.is_file():
        return read_header(_single_file(folder))
    places = read_json(index, expected="the shard of each tensor").get("weight_map")
    if not isinstance(places, dict) or not all(_is_plain_name(shard) for shard in places.values()):
        raise CheckpointError(index, "no weight_map of file names", "the shard of each tensor")
    headers: dict[str, TensorHeader] = {}
    for shard in sorted(set(places.values())):
        if not (folder / shard).is_file():
            raise CheckpointError(folder / shard, "missing", f"a shard listed in {INDEX}")
        found = read_header(folder / shard)
        listed = {name for name, place in places.items() if place == shard}
        if difference := listed ^ found.keys():
            seen = f"{min(difference)} is only in one of shard and {INDEX}"
            raise CheckpointError(folder / shard, seen, "the same tensors in both")
        headers |= found
    return headers


def read_json(file: Path, *, expected: str) -> Mapping[str, object]:
    """A JSON object from a file; `expected` says what it should have been."""
    try:
        data = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise CheckpointError(file, "missing", expected) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(file, f"unreadable ({error!s:.80})", expected) from None
    if not isinstance(data, dict):
        raise CheckpointError(file, f"a JSON {type(data).__name__}", expected)
    return data


def _single_file(folder: Path) -> Path:
    file = folder / "model.safetensors"
    if file.is_file():
        return file
    pickles = [path.name for pattern in PICKLES for path in folder.glob(pattern)]
    seen = f"only {pickles[0]}, a format that can run code" if pickles else "missing"
    raise CheckpointError(file, seen, f"model.safetensors, or shards with {INDEX}")


def _is_plain_name(shard: object) -> bool:
    """A file of the folder itself, not a path that leads elsewhere."""
    return isinstance(shard, str) and Path(shard).name == shard and shard not in ("", ".", "..")


def _is_redundant(name: str) -> bool:
    """What some checkpoints hold beside the weights: a tied head, tables of the rotation."""
    return name == "lm_head.weight" or name.endswith("rotary_emb.inv_freq")
