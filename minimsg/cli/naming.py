"""What is wrong with a model's name, in words for who has typed it.

The hub says that it knows no such model, and what it takes. Here a path that leads
nowhere, a file of another kind and a built-in name with a slip are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from minimsg.errors import ModelNotFound


@contextmanager
def explained(name: str) -> Iterator[None]:
    """A block that looks for the model `name`; its ModelNotFound says why, where that is plain."""
    try:
        yield
    except ModelNotFound as error:
        raise ModelNotFound(_why(name) or str(error)) from error


def _why(name: str) -> str | None:
    """The reason that the name itself gives away; None if it gives none."""
    from minimsg.hub import BUILTIN

    path = Path(name)
    if path.is_file() and path.suffix != ".gguf":
        return f"{name} is not a model; a .gguf file is, or a Hugging Face folder"
    if _is_path(name) and not path.exists():
        return f"no such file or folder: {name}"
    for near in get_close_matches(name, BUILTIN, n=1):
        if near != name:
            return f"no model {name!r}; did you mean {near}?"
    return None


def _is_path(name: str) -> bool:
    """Whether only a file or a folder can be meant."""
    return name.startswith((".", "/", "~")) or name.endswith(".gguf")
