"""A .gguf file -> the files of a model folder, the weights dequantized to float32.

Puts together what `models/gguf*.py` reads and `text/from_gguf.py` rebuilds, and opens the
result as serving does, before the weights are written: what could not be served is not
converted. One tensor is in memory at a time. Needs the extra `[engine]` (gguf, numpy),
not torch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from minimsg.errors import CheckpointError, TemplateError, UnsupportedModel
from minimsg.hub.extras import require
from minimsg.hub.progress import Progress
from minimsg.hub.store import write_json
from minimsg.models.tensors import TensorHeader, write_safetensors
from minimsg.prompt.chat import ChatModel
from minimsg.text.from_gguf import special_tokens, tokenizer_from_gguf

if TYPE_CHECKING:
    from minimsg.models.gguf import GGUF
    from minimsg.models.gguf_weights import Array


def convert(file: Path, folder: Path, progress: Progress) -> str | None:
    """Fill `folder` from the .gguf `file`; returns the license that the file names.

    Raises:
        CheckpointError, UnsupportedModel, TemplateError: what the file is or holds instead.
        ConfigError: the extra `[engine]` is not installed.
    """
    require("gguf", extra="engine", purpose="to convert a .gguf file")
    from minimsg.models.gguf import GGUF
    from minimsg.models.gguf_config import config_from_gguf, generation_config_from_gguf

    opened = GGUF.open(file)
    config = config_from_gguf(opened)
    _write_tokenizer(opened, folder, config["vocab_size"])
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", generation_config_from_gguf(opened))
    _write_template(opened, folder)
    _refuse_unservable(file, folder)
    _write_weights(opened, config, folder / "model.safetensors", progress)
    license = opened.metadata.get("general.license")
    return license if isinstance(license, str) else None


def _write_tokenizer(file: GGUF, folder: Path, num_rows: object) -> None:
    tokenizer = tokenizer_from_gguf(file.metadata, file.path)
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    assert isinstance(num_rows, int)
    if size > num_rows:
        raise CheckpointError(file.path, f"{size:,} tokens", f"at most the {num_rows:,} embeddings")
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "add_bos_token": file.metadata.get("tokenizer.ggml.add_bos_token", False),
        **special_tokens(file.metadata),
    }
    write_json(folder / "tokenizer_config.json", config)


def _write_template(file: GGUF, folder: Path) -> None:
    template = file.metadata.get("tokenizer.chat_template")
    if template is None:
        return
    if not isinstance(template, str):
        seen = f"tokenizer.chat_template is {template!r:.60}"
        raise CheckpointError(file.path, seen, "a string")
    (folder / "chat_template.jinja").write_text(template, "utf-8", newline="")


def _refuse_unservable(file: Path, folder: Path) -> None:
    """Open what was written, and say of the .gguf file what is wrong with it."""
    try:
        ChatModel.open(folder, file.stem)
    except CheckpointError as error:
        part = error.file.removeprefix(f"{folder}{os.sep}")
        raise CheckpointError(file, f"as {part}: {error.seen}", error.expected) from error
    except (TemplateError, UnsupportedModel) as error:
        message = f"{error}".replace(f"{folder}{os.sep}", "")
        raise type(error)(f"{file}: as {message}") from error


def _write_weights(file: GGUF, config: dict[str, object], to: Path, progress: Progress) -> None:
    from minimsg.models.gguf_weights import tensors_from_gguf

    shapes, values = tensors_from_gguf(file, config)
    total = sum(prod(shape) * 4 for shape in shapes.values())
    headers = {name: TensorHeader("F32", shape) for name, shape in shapes.items()}
    write_safetensors(to, headers, _counted(values, total, progress))


def _counted(
    values: Iterable[tuple[str, Array]], total: int, progress: Progress
) -> Iterator[tuple[str, memoryview]]:
    done = 0
    for name, array in values:
        yield name, array.astype("<f4", copy=False).data
        done += array.nbytes
        progress("converting", done, total)
