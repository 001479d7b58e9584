"""minimsg: the whole life of a Messages request in Python that one person can read.

Importing the package imports neither torch nor the engine; `load`, `Engine` and
`SamplingParams` are resolved on first use. Start reading at `server/messages.py`
(HTTP side) or `engine/engine.py` (the five-line heart).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from minimsg.engine.engine import Engine
    from minimsg.engine.types import SamplingParams
    from minimsg.loading import load

_LAZY = {
    "Engine": "minimsg.engine.engine",
    "SamplingParams": "minimsg.engine.types",
    "load": "minimsg.loading",
}

__all__ = ["Engine", "SamplingParams", "__version__", "load"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'minimsg' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
