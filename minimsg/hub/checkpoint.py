"""Whether a folder holds a model that minimsg can load, seen from headers alone.

Used before a folder is served in place and after one is downloaded: config.json, a
tokenizer, and safetensors whose names and shapes are those that the config asks for.
Reads no weights and needs no torch. Formats that can run code (`.bin`, `.pt`) are
refused, not skipped.
"""

from __future__ import annotations

from pathlib import Path

from minimsg.fields import Fields
from minimsg.models.config import ModelConfig
from minimsg.models.parameters import DENSE, as_stored, parameter_shapes, refuse_difference
from minimsg.models.shards import weight_files
from minimsg.models.tensors import TensorHeader


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
            refuse_difference(folder, seen, as_stored(parameter_shapes(config), seen))
    return config


def tensor_headers(folder: Path) -> dict[str, TensorHeader]:
    """Every tensor that the model may need, whatever file it is in. Raises CheckpointError."""
    files = weight_files(folder)
    return {name: header for headers in files.values() for name, header in headers.items()}
