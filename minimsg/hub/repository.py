"""A model repository on the Hugging Face hub, through the `huggingface_hub` library.

The library downloads into its own cache, which is shared with other programs: it takes
up a broken transfer where it stopped, and a pull that was interrupted keeps the files
that were complete. They are then linked (or copied, to another disk) into the model's
folder. Only what serving needs is fetched, and the hub's SHA-256 of every
large file is compared with what arrived. Needs the extra `[hub]`.
"""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minimsg.errors import CheckpointError, ModelNotFound
from minimsg.hub.extras import require
from minimsg.hub.progress import Progress
from minimsg.hub.store import sha256

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

WANTED: Final = ("*.safetensors", "*.json", "*.jinja", "tokenizer.model", "merges.txt", "LICENSE*")
UNWANTED: Final = ("consolidated*",)  # the same weights again, under other names


def download(repository: str, folder: Path, progress: Progress) -> str | None:
    """Fill `folder` with the files of `ORG/REPO`; returns the license it names.

    Raises:
        ConfigError: the extra `[hub]` is not installed.
        ModelNotFound: the hub does not have it, or could not be reached.
        CheckpointError: no safetensors, or a file is not the one that the hub lists.
    """
    require("huggingface_hub", extra="hub", purpose="to fetch a model from the hub")
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(repository, files_metadata=True)
        files = _wanted(info)
        for number, file in enumerate(files, 1):
            _fetch(
                info, file, folder, _Stage(progress, f"{file.rfilename} ({number}/{len(files)})")
            )
    except _failures() as error:
        message = f"{repository} could not be fetched from the hub: {error}"
        raise ModelNotFound(f"{message}\nFor a private or gated model: hf auth login") from error
    card = info.card_data
    license = card.get("license") if card else None
    return license if isinstance(license, str) else None


def _failures() -> tuple[type[Exception], ...]:
    """What the library raises: its own errors, and those of its HTTP client.

    The client has had several names; its root exception is a base of the library's.
    """
    from huggingface_hub.errors import HfHubHTTPError

    bases = [base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError"]
    return (*(base for base in bases if issubclass(base, Exception)), OSError, ValueError)


def _wanted(info: ModelInfo) -> list[RepoSibling]:
    files = [
        file
        for file in info.siblings or []
        if any(fnmatch(file.rfilename, pattern) for pattern in WANTED)
        and not any(fnmatch(file.rfilename, pattern) for pattern in (*UNWANTED, "*/*"))
    ]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise CheckpointError(f"repository {info.id}", "no safetensors", "model.safetensors")
    return files


def _fetch(info: ModelInfo, file: RepoSibling, folder: Path, stage: _Stage) -> None:
    from huggingface_hub import hf_hub_download

    cached = hf_hub_download(
        info.id, file.rfilename, revision=info.sha, tqdm_class=_bar_class(stage)
    )
    source = Path(cached).resolve()  # the cache's name of it is a symlink
    if file.lfs is not None and (digest := sha256(source)) != file.lfs.sha256:
        source.unlink()  # else the library would take it for whole the next time
        raise CheckpointError(file.rfilename, f"SHA-256 {digest}", file.lfs.sha256)
    target = folder / file.rfilename
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


class _Stage:
    """Adds up the steps that the library reports of one file."""

    def __init__(self, progress: Progress, name: str) -> None:
        self.progress = progress
        self.name = name
        self.done = 0

    def advance(self, step: float, total: float | None) -> None:
        self.done += int(step)
        self.progress(self.name, self.done, int(total) if total else None)


def _bar_class(stage: _Stage) -> type:
    """A progress bar, as the library wants one, that draws nothing and tells `stage`."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: object, initial: float = 0, **options: object) -> None:
            options.pop("name", None)
            super().__init__(*args, **{**options, "disable": True})
            stage.advance(initial, self.total)

        def update(self, n: float | None = 1) -> None:
            stage.advance(n or 0, self.total)

    return Bar
