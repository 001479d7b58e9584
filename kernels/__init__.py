"""Which kernel runs: the backends in order of preference, and `choose`.

Knows names and reasons, imports a backend only when it is asked whether it can run.
The interface is `contract.py`; to add a backend see `README.md`.
"""

from __future__ import annotations

import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from minimsg.errors import KernelUnavailable

if TYPE_CHECKING:
    import torch

    from minimsg.kernels.contract import Backend

BACKENDS: Final = (
    "minimsg.kernels.cpu_native",
    "minimsg.kernels.cpu",
    "minimsg.kernels.triton_paged",
    "minimsg.kernels.metal_paged",
    "minimsg.kernels.reference",  # runs everywhere, so what follows is taken by name only
    "minimsg.kernels.tiled",
)
"""Modules with a class `Backend`, in order of preference."""

INVARIANT: Final = ("cpu_native", "tiled")
"""Those that `--deterministic` may use; each says so of itself, too."""

log = logging.getLogger(__name__)


def names() -> list[str]:
    """The names that `--kernel` and `MINIMSG_KERNEL` accept, in order of preference."""
    return [module.rpartition(".")[2] for module in BACKENDS]


def choose(
    *,
    device: torch.device,
    dtype: torch.dtype,
    head_dim: int,
    name: str | None = None,
    deterministic: bool = False,
) -> Backend:
    """A new backend for one engine: `name`, else MINIMSG_KERNEL, else the first that can run.

    `deterministic`: among those whose numbers no neighbour can change. Logs why each one
    before it was passed over.

    Raises:
        KernelUnavailable: the name is unknown, or no kernel that was asked for can run here;
            the message says why.
    """
    forced = name or os.environ.get("MINIMSG_KERNEL")
    reasons = []
    for candidate in [forced] if forced else names():
        backend = _open(candidate)
        why_not = backend.supports(device=device, dtype=dtype, head_dim=head_dim)
        if why_not is None and deterministic and not backend.is_batch_invariant:
            why_not = f"its numbers depend on what else runs; {' and '.join(INVARIANT)} can"
        if why_not is None:
            log.info("kernel %s on %s, %s", candidate, device, dtype)
            return backend
        log.info("kernel %s passed over: %s", candidate, why_not)
        reasons.append(f"kernel {candidate}: {why_not}")
    where = f"on {device} in {str(dtype).removeprefix('torch.')}"
    if not forced:
        reasons.append("ask for another dtype; int8 needs a C compiler")
    raise KernelUnavailable(f"no kernel that was asked for runs {where}. {'; '.join(reasons)}")


def _open(name: str) -> Backend:
    if name not in names():
        raise KernelUnavailable(f"no kernel is called {name!r}; there are {', '.join(names())}")
    module = import_module(BACKENDS[names().index(name)])
    return cast("Backend", module.Backend())
