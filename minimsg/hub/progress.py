"""How work that takes a while tells whoever waits: `progress(stage, done, total)`."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called from the working thread, often; shows it or does nothing."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """`done` of `total` bytes of `stage`; None if the total is not known."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Tell nobody."""
