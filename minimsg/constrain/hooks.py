"""Hooks of the engine that hold a reply to a grammar: from its first id, or several at once.

`TokenHook` (`engine/types.py`) is the protocol. A hook lives in the engine's thread and
fails alone: what it raises ends its own request. Calls that a model begins by itself are
held by `lazy.py`, thinking is cut short by `budget.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Protocol

from minimsg.constrain.loops import Circles
from minimsg.constrain.matcher import Matcher
from minimsg.constrain.vocabulary import Vocabulary, bits_of
from minimsg.engine.types import BitMask, NamedHook, TokenHook


class GrammarHook:
    """Holds a reply to a grammar. The turn ends where the grammar allows, or has to.

    `circles`: that the reply is led out of, if it is JSON (`loops.py`).
    Invariant: the matcher has taken in all ids but those that end the turn.
    """

    name = "grammar"

    def __init__(
        self, matcher: Matcher, vocabulary: Vocabulary, circles: Circles | None = None
    ) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._circles = circles
        self._num_ends = 0  # ids that ended the turn; more than one only if one was taken back

    def mask(self) -> BitMask | None:
        mask = self._matcher.mask()
        return self._circles.way_out(mask) if self._circles else mask

    def forced(self) -> int | None:
        return self._vocabulary.end_id if self._matcher.is_finished else None

    def advance(self, id: int) -> None:
        if id in self._vocabulary.end_ids:
            self._num_ends += 1
            return
        self._matcher.advance(id)
        if self._circles:
            self._circles.push(id)

    def rollback(self, n: int) -> None:
        num_ends = min(n, self._num_ends)
        self._num_ends -= num_ends
        self._matcher.rollback(n - num_ends)
        if self._circles:
            self._circles.rollback(n - num_ends)


class Together:
    """Several hooks at once. What one forces, comes; else an id must please all."""

    def __init__(self, hooks: Sequence[TokenHook]) -> None:
        self._hooks = hooks

    @property
    def name(self) -> str:
        forcing = [hook for hook in self._hooks if hook.forced() is not None][:1]
        speaking = forcing or [hook for hook in self._hooks if hook.mask() is not None]
        return " and ".join(hook.name for hook in speaking if isinstance(hook, NamedHook))

    def mask(self) -> BitMask | None:
        masks = [mask for hook in self._hooks if (mask := hook.mask()) is not None]
        return reduce(and_, map(as_bits, masks)) if masks else None

    def forced(self) -> int | None:
        return next((id for hook in self._hooks if (id := hook.forced()) is not None), None)

    def advance(self, id: int) -> None:
        for hook in self._hooks:
            hook.advance(id)

    def rollback(self, n: int) -> None:
        for hook in self._hooks:
            hook.rollback(n)


class Forward(Protocol):
    """A hook that cannot take ids back."""

    @property
    def name(self) -> str: ...

    def mask(self) -> BitMask | None: ...

    def forced(self) -> int | None: ...

    def advance(self, id: int) -> None: ...


class Restarting:
    """A hook of one that goes forward only: to go back, it starts again with what is left."""

    def __init__(self, start: Callable[[], Forward]) -> None:
        self._start = start
        self._hook = start()
        self._ids: list[int] = []

    @property
    def name(self) -> str:
        return self._hook.name

    def mask(self) -> BitMask | None:
        return self._hook.mask()

    def forced(self) -> int | None:
        return self._hook.forced()

    def advance(self, id: int) -> None:
        self._ids.append(id)
        self._hook.advance(id)

    def rollback(self, n: int) -> None:
        self._hook = self._start()
        self._ids = self._ids[: len(self._ids) - n]
        for id in self._ids:
            self._hook.advance(id)


def as_bits(mask: BitMask | Sequence[int]) -> BitMask:
    """A mask of either form as bits."""
    return mask if isinstance(mask, BitMask) else bits_of(mask)
