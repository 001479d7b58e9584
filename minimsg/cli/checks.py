"""What `minimsg doctor` looks at, one function a question.

Each answers with a `Check` and never raises. Imports torch only if it is installed.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from minimsg.config import ServerConfig
from minimsg.errors import KernelUnavailable, MinimsgError
from minimsg.hub import store
from minimsg.machine import machine, usable_cores

if TYPE_CHECKING:
    import torch

MIN_PYTHON = (3, 11)
MIN_FREE_BYTES = 1 << 30  # SmolLM2 in bfloat16, its cache and torch itself
UNSEEN_HARDWARE = {  # by kernel
    "metal_paged": "emulated in tests, not yet run on hardware",
    "triton_paged": "interpreted in tests, not yet run on hardware",
}
ENGINE_PACKAGES = ("torch", "numpy", "PIL", "safetensors", "gguf", "llguidance")


@dataclass(frozen=True)
class Check:
    """One answer. `remedy` says what to do if it is not ok."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    is_needed: bool = True  # to serve; else it is only good to know

    def as_dict(self) -> dict[str, object]:
        """For JSON; what is ok needs no remedy."""
        facts = asdict(self)
        if self.ok:
            del facts["remedy"]
        return facts


def all_checks(data_dir: Path | None, port: int, *, verify: bool = False) -> list[Check]:
    """Every check that makes sense here; with `verify` the models are hashed."""
    checks = [python(), engine(), *devices_and_kernels(), memory(), data_folder(data_dir)]
    return [*checks, *models(data_dir, verify=verify), port_is_free(port)]


def python() -> Check:
    """The interpreter is new enough."""
    wanted = ".".join(map(str, MIN_PYTHON))
    return Check(
        "python",
        sys.version_info >= MIN_PYTHON,
        f"{platform.python_version()} at {sys.executable}",
        f"install Python {wanted} or newer",
    )


def engine() -> Check:
    """The packages that run a model are installed."""
    missing = [name for name in ENGINE_PACKAGES if find_spec(name) is None]
    found = f"missing: {', '.join(missing)}" if missing else "installed"
    return Check("engine", not missing, found, "pip install 'minimsg[engine]'")


def devices_and_kernels() -> Iterator[Check]:
    """Each device that torch sees, and each kernel there: can it run, or why not."""
    if find_spec("torch") is None:
        return
    import torch

    from minimsg.kernels import names
    from minimsg.loading import choose_dtype

    for device in [torch.device("cpu"), *_accelerators()]:
        dtype = choose_dtype("auto", device)
        found = f"{_device_name(device)}; --dtype auto is {str(dtype).removeprefix('torch.')}"
        yield Check(f"device {device}", True, found, is_needed=False)
        checks = [_kernel(name, device, dtype) for name in names()]
        yield from checks
        can_run = [check.name for check in checks if check.ok]
        found = can_run[0] if can_run else "no kernel can run"
        yield Check(f"models on {device}", bool(can_run), found, "use another --device")


def _kernel(name: str, device: torch.device, dtype: torch.dtype) -> Check:
    """Whether one kernel can run on one device, asked with the head size of the default model."""
    from minimsg.kernels import choose

    warning = f" ({UNSEEN_HARDWARE[name]})" if name in UNSEEN_HARDWARE else ""
    try:
        choose(device=device, dtype=dtype, head_dim=64, name=name)
    except KernelUnavailable as error:
        why_not = str(error).partition(f"kernel {name}: ")[2] or str(error)
        return Check(f"kernel {name}", False, f"{why_not}{warning}", is_needed=False)
    return Check(f"kernel {name}", True, f"can run on {device}{warning}", is_needed=False)


def _accelerators() -> list[torch.device]:
    import torch

    found = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return [*found, *([torch.device("mps")] if torch.backends.mps.is_available() else [])]


def _device_name(device: torch.device) -> str:
    import torch

    if device.type == "cpu":
        return f"{usable_cores()} cores, torch uses {torch.get_num_threads()} threads"
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "Apple GPU"


def memory() -> Check:
    """Enough is free for the default model."""
    free = machine().free_memory_bytes
    found = "unknown" if free is None else f"{free / 1e9:.1f} GB free"
    is_enough = free is None or free >= MIN_FREE_BYTES
    return Check("memory", is_enough, found, f"free {MIN_FREE_BYTES / 1e9:.1f} GB")


def data_folder(data_dir: Path | None) -> Check:
    """Models can be stored."""
    folder = data_dir or store.default_data_dir()
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    is_writable = existing.is_dir() and os.access(existing, os.W_OK)
    found = f"{folder}{'' if folder.exists() else ' (will be created)'}"
    found += "" if is_writable else f": {existing} cannot be written"
    return Check("data folder", is_writable, found, "name another one with --data-dir")


def models(data_dir: Path | None, *, verify: bool) -> Iterator[Check]:
    """Every stored model against what was noted when it was stored: sizes, or every byte."""
    parent = store.models_dir(data_dir)
    found = "unchanged" if verify else "complete (--verify hashes it)"
    folders = sorted(path for path in parent.glob("*") if not path.name.startswith("."))
    for folder in folders:
        try:
            manifest = store.check(folder, hashes=verify)
        except MinimsgError as error:
            remedy = f"remove {folder} and pull the model again"
            yield Check(f"model {folder.name}", False, str(error), remedy)
        else:
            yield Check(f"model {manifest.name}", True, f"{manifest.size / 1e6:.0f} MB, {found}")


def port_is_free(port: int, host: str = ServerConfig.host) -> Check:
    """A server could listen there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        if os.name != "nt":  # as a server does; on Windows it would mean something else
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            return Check("port", False, f"{port}: {why}", _listening_remedy(error))
    return Check("port", True, f"{port} is free")


def _listening_remedy(error: Exception) -> str:
    """What helps depends on which half of the address is at fault."""
    number = getattr(error, "errno", None)
    if isinstance(error, socket.gaierror) or number == errno.EADDRNOTAVAIL:
        return "choose a --host of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
    if number == errno.EACCES:
        return "choose a --port from 1024 on, which needs no privilege"
    return "stop what listens there, or choose another --port (0 takes a free one)"
