"""Loads a model folder: config.json, and safetensors in one file or in shards.

A model says which checkpoint tensors it wants and where each goes; nothing missing,
nothing unexpected and nothing that is not a number is let through, and no memory is
taken before the headers agree with the config. Only safetensors is read: pickled
formats can run code (CVE-2025-32434). A GGUF file is converted first (`gguf.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, cast

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from minimsg.errors import CheckpointError
from minimsg.kernels.contract import Backend, Formats, LinearOperator, formats_of
from minimsg.models import FAMILIES
from minimsg.models.config import ModelConfig
from minimsg.models.contract import Model
from minimsg.models.kept import keep_packed, read_packed
from minimsg.models.layers import Decoder
from minimsg.models.parameters import EMBEDDING, HEAD, as_stored, refuse_difference
from minimsg.models.shards import weight_files
from minimsg.models.vision_parameters import plain_name

FLOAT_FORMATS: Final = ("F64", "F32", "F16", "BF16")  # safetensors' names


def load_model(
    folder: Path, *, dtype: torch.dtype, device: torch.device, backend: Backend
) -> Model:
    """The model of `folder`, its weights converted to `dtype` on `device`.

    Raises:
        CheckpointError: a file is missing or broken, or its tensors are not what the
            config asks for.
        UnsupportedModel: see `ModelConfig`.
    """
    config = ModelConfig.from_folder(folder)
    formats = formats_of(backend, dtype)
    with torch.device("meta"):  # shapes without memory
        model: Model = import_module(FAMILIES[config.model_type]).Model(config, backend)
    files = _check(folder, model.checkpoint_tensors())
    module = cast(nn.Module, model).eval()
    operator = backend if isinstance(backend, LinearOperator) else None
    kept: dict[str, Tensor] = {}
    if operator is not None and isinstance(module, Decoder) and formats.weights is torch.int8:
        kept = _fitting(module, operator, read_packed(folder, files, operator.order))
    _allocate(module, formats, device, without=_unread(module) if kept else set())
    weights, copies = _destinations(files, model.checkpoint_tensors())
    for file, names in files.items():
        wanted = {name: weights[name] for name in names if name in weights}
        _fill(file, {name: tensor for name, tensor in wanted.items() if not tensor.is_meta})
    for file, names in files.items():
        _compare(file, {name: copies[name] for name in names if name in copies})
    if operator is not None and isinstance(module, Decoder):
        packed = module.hand_over(operator, formats, kept)
        if formats.weights is torch.int8 and not kept:
            keep_packed(folder, files, operator.order, packed)
    return model


def _fitting(
    module: Decoder, operator: LinearOperator, kept: dict[str, Tensor]
) -> dict[str, Tensor]:
    """`kept` if it has what every product of the model needs; else nothing."""
    shapes = {
        name: operator.packed_shape(linear.weight.shape, is_gated=linear.is_gated)
        for name, linear in module.products()
    }
    seen = {name: tensor.shape for name, tensor in kept.items()}
    return kept if seen == shapes and all(t.dtype is torch.uint8 for t in kept.values()) else {}


def _unread(module: nn.Module) -> set[nn.Module]:
    """Whose weights need not be read if they are kept packed: a tied head's are, for its rows."""
    assert isinstance(module, Decoder)
    needed = module.head if module.embedding is None else None
    return {linear for _, linear in module.products() if linear is not needed}


def _allocate(
    module: nn.Module, formats: Formats, device: torch.device, without: set[nn.Module]
) -> None:
    """Memory for every parameter. `to_empty` would import sympy for it, which takes a second.

    Matrices that are to become int8 are read in float32. The weights of modules in `without`
    stay shapes.
    """
    matrices = formats.weights if formats.weights.is_floating_point else torch.float32
    for part in module.modules():
        for name, parameter in list(part.named_parameters(recurse=False)):
            if name == "weight" and part in without:
                continue
            dtype = matrices if parameter.dim() > 1 else formats.activations
            empty = torch.empty(parameter.shape, dtype=dtype, device=device)
            setattr(part, name, nn.Parameter(empty, requires_grad=False))


def _check(folder: Path, wanted: Mapping[str, Tensor]) -> dict[Path, list[str]]:
    """Each file of the checkpoint with the tensors to read from it, all headers compared."""
    if not wanted:  # a family without weights
        return {}
    files = weight_files(folder)
    seen = {name: header for headers in files.values() for name, header in headers.items()}
    expected = {name: tuple(tensor.shape) for name, tensor in wanted.items()}
    shapes = {name: header.shape for name, header in seen.items()}
    refuse_difference(folder, shapes, as_stored(expected, shapes))
    for name, header in seen.items():
        if header.dtype not in FLOAT_FORMATS:
            raise CheckpointError(folder, f"{name} is {header.dtype}", " or ".join(FLOAT_FORMATS))
    return {file: list(headers) for file, headers in files.items()}


def _destinations(
    files: Mapping[Path, list[str]], weights: Mapping[str, Tensor]
) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """Where stored tensors go; and those that are copies, with what they must be copies of.

    A tied model may store its one matrix as the head, alone or beside the embedding. A
    head that differs is one that transformers would use.
    """
    stored = {name for names in files.values() for name in names}
    if HEAD not in stored or HEAD in weights:
        return weights, {}
    tied = {HEAD: weights[EMBEDDING]}
    return (weights, tied) if EMBEDDING in stored else ({**weights, **tied}, {})


def _fill(file: Path, destinations: Mapping[str, Tensor]) -> None:
    """Copy tensors of `file` into the weights, converting them."""
    try:
        with safe_open(file, framework="pt", device="cpu") as tensors:
            stored = {plain_name(name): name for name in tensors.keys()}  # noqa: SIM118
            for name, destination in destinations.items():
                destination.copy_(tensors.get_tensor(stored[name]))
                _refuse_no_numbers(destination, file, name)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(file, str(error), "a complete safetensors file") from error


def _compare(file: Path, originals: Mapping[str, Tensor]) -> None:
    """Raise if a copy of a weight in `file` is another matrix in the format that was asked for."""
    if not originals:
        return
    with safe_open(file, framework="pt", device="cpu") as tensors:
        for name, original in originals.items():
            if not torch.equal(tensors.get_tensor(name).to(original), original):
                expected = "the same numbers, since tie_word_embeddings is true in config.json"
                raise CheckpointError(file, f"{name} differs from {EMBEDDING}", expected)


def _refuse_no_numbers(weight: Tensor, file: Path, name: str) -> None:
    """After the conversion, so that a number too large for the new format is found too."""
    if torch.isfinite(weight.sum(dtype=torch.float32)):  # the cheap question settles nearly all
        return
    low, high = torch.aminmax(weight)
    if not (torch.isfinite(low) and torch.isfinite(high)):
        raise CheckpointError(file, f"{name} has NaN or infinity in {weight.dtype}", "numbers")
