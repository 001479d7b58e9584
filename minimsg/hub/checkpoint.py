"""Whether a folder holds a model that minimsg can load, seen from headers alone.

Used before a folder is served in place and after one is downloaded: config.json, a
tokenizer, and safetensors whose names and shapes are those that the config asks for.
Reads no weights and needs no torch. Formats that can run code (`.bin`, `.pt`) are
refused, not skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minimsg.errors import CheckpointError
from minimsg.models.config import ModelConfig
from minimsg.models.fields import Fields
from minimsg.models.parameters import DENSE, parameter_shapes, refuse_difference
from minimsg.models.tensors import TensorHeader, read_header

INDEX: Final = "model.safetensors.index.json"
PICKLES: Final = ("*.bin", "*.pt", "*.pth", "*.pt2", "*.ckpt")


def check_folder(folder: Path) -> ModelConfig:
    """Refuse a folder that could not be served.

    Raises:
        CheckpointError: a file is missing, broken, or does not fit the config.
        UnsupportedModel: a model family or a setting that is not ours.
    """
    config = ModelConfig.from_folder(folder)
    Fields.from_file(folder / "tokenizer.json")
    if config.script is None:
        seen = {name: header.shape for name, header in tensor_headers(folder).items()}
        if config.model_type in DENSE:
            needed = {
                name: shape for name, shape in seen.items() if not _is_redundant(name, config)
            }
            refuse_difference(folder, needed, parameter_shapes(config))
    return config


def tensor_headers(folder: Path) -> dict[str, TensorHeader]:
    """Every tensor of the folder's safetensors, in one file or in shards.

    Raises:
        CheckpointError: a file is missing or broken, or the index and the shards disagree.
    """
    index = folder / INDEX
    if not index.is_file():
        return read_header(_single_file(folder))
    places = {
        name: _plain_name(index, shard)
        for name, shard in Fields.from_file(index).nested("weight_map").data.items()
    }
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


def _single_file(folder: Path) -> Path:
    file = folder / "model.safetensors"
    if file.is_file():
        return file
    pickles = [path.name for pattern in PICKLES for path in folder.glob(pattern)]
    seen = f"only {pickles[0]}, a format that can run code" if pickles else "missing"
    raise CheckpointError(file, seen, f"model.safetensors, or shards with {INDEX}")


def _plain_name(index: Path, shard: object) -> str:
    """A file beside the index, not a path that leads elsewhere."""
    if not isinstance(shard, str) or Path(shard).name != shard:
        raise CheckpointError(index, f"the shard {shard!r}", "the name of a file beside it")
    return shard


def _is_redundant(name: str, config: ModelConfig) -> bool:
    """What some checkpoints hold beside the weights: a tied head, tables of the rotation."""
    is_tied_head = config.tie_word_embeddings and name == "lm_head.weight"
    return is_tied_head or name.endswith(".rotary_emb.inv_freq")
