"""A method of one object replaced for the length of a block: how a benchmark looks inside.

The engine has no hooks for it and needs none; what is replaced calls what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def replaced(owner: object, name: str, by: Callable[..., object]) -> Iterator[None]:
    """`owner.name` is `by` within the block, for this object alone."""
    own = vars(owner).get(name)  # None: the class's, which is there again afterwards
    setattr(owner, name, by)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)
