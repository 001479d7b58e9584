"""The folder of models on this machine, and how one gets into it without ever being half there.

A model is a folder `models/NAME` in the data folder with a `minimsg.json` that lists
every file with its size and SHA-256. It is built in a staging folder beside its place
(`staging.py`), synced to disk and renamed: whatever `models/NAME` exists is whole. Two
processes that build the same model both succeed; the second to finish takes the first
one's. Knows nothing of where models come from: see `__init__.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import platformdirs

from minimsg.errors import CheckpointError, ConfigError
from minimsg.fields import Fields
from minimsg.hub.staging import staging_folder

MANIFEST: Final = "minimsg.json"
MAX_FILE_BYTES: Final = 1 << 50
MAX_NAME_BYTES: Final = 128  # leaves room for what staging adds, within the 255 of a file name
PUBLISH_ATTEMPTS: Final = 5


@dataclass(frozen=True)
class FileRecord:
    """What a file must be."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Origin:
    """Where a model came from."""

    source: str
    license: str | None


@dataclass(frozen=True)
class Manifest:
    """minimsg.json: where a model came from and what its files are."""

    name: str  # what the commands call it
    source: str
    license: str | None
    created_at: str  # ISO 8601, UTC
    files: Mapping[str, FileRecord]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(record.size for record in self.files.values())


def default_data_dir() -> Path:
    """`MINIMSG_DATA_DIR`, else the platform's user data folder."""
    given = os.environ.get("MINIMSG_DATA_DIR")
    return Path(given) if given else platformdirs.user_data_path("minimsg")


def models_dir(data_dir: Path | None) -> Path:
    """Where models lie."""
    return (data_dir or default_data_dir()) / "models"


def folder_name(name: str) -> str:
    """`Qwen/Qwen3-0.6B` -> `Qwen--Qwen3-0.6B`: a name as a folder that cannot lead elsewhere.

    What is too long for a folder is cut and told apart by a hash.
    """
    folder = re.sub(r"[^\w.-]+", "-", name.replace("/", "--")).lstrip(".") or "model"
    data = folder.encode()
    if len(data) <= MAX_NAME_BYTES:
        return folder
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12]
    return data[: MAX_NAME_BYTES - 13].decode(errors="ignore") + f"-{digest}"


def read_manifest(folder: Path) -> Manifest:
    """minimsg.json of a model's folder.

    Raises:
        CheckpointError: it is missing or is not what we wrote.
    """
    file = folder / MANIFEST
    try:
        fields = Fields.from_file(file)
        files = fields.nested("files")
        return Manifest(
            name=fields.text("name"),
            source=fields.text("source"),
            license=fields.text("license", "") or None,
            created_at=fields.text("created_at"),
            files={name: _record(files.nested(name)) for name in files.data},
        )
    except CheckpointError as error:
        seen = f"unreadable ({error.seen:.200})"
        raise CheckpointError(file, seen, "the list of the model's files") from None


def _record(fields: Fields) -> FileRecord:
    size = fields.integer("size", minimum=0, maximum=MAX_FILE_BYTES)
    return FileRecord(size, fields.text("sha256"))


def check(folder: Path, *, hashes: bool = False) -> Manifest:
    """Compare the files with the manifest: sizes always, contents with `hashes`.

    Raises:
        CheckpointError: a file is missing or differs.
    """
    manifest = read_manifest(folder)
    for name, record in manifest.files.items():
        file = folder / name
        # os.path, unlike Path, has no error for a name that no folder can hold
        size = file.stat().st_size if os.path.isfile(file) else None
        if size != record.size:
            seen = "missing" if size is None else f"{size:,} bytes"
            raise CheckpointError(file, seen, f"{record.size:,} bytes")
        if hashes and (digest := sha256(file)) != record.sha256:
            raise CheckpointError(file, f"SHA-256 {digest}", record.sha256)
    return manifest


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def build(target: Path, name: str, fill: Callable[[Path], Origin]) -> None:
    """Make the folder `target`: `fill` writes its files and says where they came from.

    Raises:
        ConfigError: the data folder cannot be written, or the disk is full.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(target) as work:
            folder = work / target.name
            folder.mkdir()
            _write_manifest(folder, name, fill(folder))
            _sync(folder)
            _publish(folder, target)
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error}") from error


def write_json(file: Path, data: object) -> None:
    """JSON as people read it. Raises ValueError for NaN and infinity, which are no JSON."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    file.write_text(text + "\n", "utf-8")


def _write_manifest(folder: Path, name: str, origin: Origin) -> None:
    files = {
        file.relative_to(folder).as_posix(): FileRecord(file.stat().st_size, sha256(file))
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = Manifest(name, origin.source, origin.license, created_at, files)
    write_json(folder / MANIFEST, asdict(manifest))


def _sync(folder: Path) -> None:
    """Force every file and the folders' entries to disk."""
    for path in (*folder.rglob("*"), folder):
        _sync_path(path)


def _sync_path(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open a folder
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _publish(folder: Path, target: Path) -> None:
    """Rename into place; keep a whole model that is there already, replace a damaged one."""
    for attempt in range(PUBLISH_ATTEMPTS):
        try:
            folder.rename(target)
            break
        except OSError:
            if attempt == PUBLISH_ATTEMPTS - 1:
                raise
        try:
            check(target, hashes=True)
            break
        except CheckpointError:
            with suppress(FileNotFoundError):  # another process has moved it away
                target.rename(folder.with_name(f"damaged-{attempt}"))
    _sync_path(target.parent)
