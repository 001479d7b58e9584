"""A method of one object replaced for the length of a block: how a benchmark looks inside.

The engine has no hooks for it and needs none; what is replaced calls what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def replaced(owner: object, method: Callable[P, R], by: Callable[P, R]) -> Iterator[None]:
    """`owner`'s bound `method` is `by` within the block."""
    name = method.__name__
    setattr(owner, name, by)
    try:
        yield
    finally:
        delattr(owner, name)  # the class still has its own
