"""What is to be known of a model folder, as JSON-ready values, for `ls` and `show`.

Reads configs and headers, never weights. Torch is asked only what `--dtype auto` would
choose, and only if it is installed.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TypeAlias

from minimsg.hub.checkpoint import check_folder, tensor_headers
from minimsg.hub.store import MANIFEST, FileRecord, Manifest, read_manifest
from minimsg.loading import choose_device, choose_dtype
from minimsg.models.config import ModelConfig
from minimsg.models.parameters import parameter_shapes
from minimsg.models.tensors import TensorHeader
from minimsg.prompt.chat import ChatModel

Facts: TypeAlias = dict[str, object]


def summary(folder: Path, manifest: Manifest) -> Facts:
    """One line of `ls`. Raises what is wrong with the config or the headers."""
    config = ModelConfig.from_folder(folder)
    _headers(folder, config)
    return {
        "name": manifest.name,
        "architecture": config.model_type,
        "parameters": num_parameters(config),
        "size_bytes": manifest.size,
        "source": manifest.source,
    }


def describe(folder: Path, name: str) -> Facts:
    """Everything `show` says of a model. Raises what is wrong with it."""
    config = check_folder(folder)
    chat = ChatModel.open(folder, name)
    headers = _headers(folder, config)
    origin = _manifest(folder, name, chat)
    return {
        "name": origin.name,
        "folder": str(folder),
        "source": origin.source,
        "license": origin.license,
        "created_at": origin.created_at,
        "architecture": config.model_type,
        "parameters": num_parameters(config),
        "stored_as": sorted({header.dtype for header in headers.values()}),
        "auto_dtype": auto_dtype(),
        **({} if config.script else _shape(config)),
        "max_context": chat.max_context,
        "sampling": _sampling(chat),
        "end_tokens": _texts(chat),
        "control_tokens": len(chat.tokenizer.control),
        "chat_template": "found" if chat.template else "none: a base model, which cannot chat",
        "files": {file: record.size for file, record in origin.files.items()},
    }


def num_parameters(config: ModelConfig) -> int:
    """Weights of the model; a tied head counts once."""
    return 0 if config.script else sum(map(prod, parameter_shapes(config).values()))


def auto_dtype() -> str:
    """The number format that `--dtype auto` means here, and where."""
    if find_spec("torch") is None:
        return "unknown: torch is not installed (pip install 'minimsg[engine]')"
    device = choose_device("auto")
    return f"{choose_dtype('auto', device)} on {device}".removeprefix("torch.")


def _headers(folder: Path, config: ModelConfig) -> dict[str, TensorHeader]:
    return tensor_headers(folder) if config.script is None else {}


def _manifest(folder: Path, name: str, chat: ChatModel) -> Manifest:
    """minimsg.json, or what stands for it in a folder that is used in place."""
    if (folder / MANIFEST).is_file():
        return read_manifest(folder)
    files = {
        path.name: FileRecord(path.stat().st_size, sha256="")
        for path in sorted(folder.iterdir())
        if path.is_file()
    }
    created_at = chat.created_at.isoformat(timespec="seconds")
    return Manifest(name, "a folder, used in place", None, created_at, files)


def _shape(config: ModelConfig) -> Facts:
    windows = sorted({window for window in config.windows if window is not None})
    return {
        "vocab_size": config.vocab_size,
        "layers": config.num_layers,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "heads": config.num_heads,
        "kv_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "tied_embeddings": config.tie_word_embeddings,
        "reads": ["text"] if config.vision is None else ["text", "images"],
        "sliding_window": windows[0] if windows else None,
        "rope": {"kind": _rope_kind(config), **asdict(config.rope)},
    }


def _rope_kind(config: ModelConfig) -> str:
    return type(config.rope).__name__.removesuffix("Rope").lower()


def _sampling(chat: ChatModel) -> Facts:
    """What a request that says nothing gets."""
    names = ("temperature", "top_p", "top_k", "repetition_penalty")
    return {name: getattr(chat.sampling, name) for name in names}


def _texts(chat: ChatModel) -> dict[str, int]:
    """Text -> id of the tokens that end a turn."""
    ids = sorted(chat.end_ids)
    return {chat.tokenizer.token_text(id): id for id in ids}
