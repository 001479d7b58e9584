"""Where one reply stands in its grammars, and what may come next.

A `Matcher` is the conjunction of what llguidance calls matchers: an id is allowed if all of
them allow it. Where no id pleases all, or one of them breaks down, one that the request can
do without is let go, so that the reply goes on in the others. llguidance never raises; a
matcher that fails goes on with a mask of its own, so every step is asked. Knows ids, no hook
(`hooks.py`) and no text but what it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minimsg.engine.types import BitMask
from minimsg.errors import GenerationFailed

if TYPE_CHECKING:
    from llguidance import LLMatcher


class Matcher:
    """One reply in its grammars. The first says what was asked for, the others are wider.

    `is_strict`: the first is never let go. Invariant: at least one grammar holds.
    """

    def __init__(self, parts: Sequence[LLMatcher], *, is_strict: bool = True) -> None:
        assert parts
        self._parts = parts
        self._is_strict = is_strict
        self._left: dict[int, int] = {}  # parts let go, and how many ids came since

    @property
    def is_finished(self) -> bool:
        """Whether nothing can follow."""
        self._check()
        first, *others = self._holding()
        if first.is_stopped() or not any(part.is_stopped() for part in others):
            return first.is_stopped()
        return first.is_accepting()

    def mask(self) -> BitMask:
        """The ids that may come next, ends of the turn included. Raises GenerationFailed."""
        first, *others = self._holding()
        bits = first.compute_bitmask()
        allowed = int.from_bytes(bits, "little")
        for part in others:
            if allowed & (allowed - 1):  # more than one id
                allowed &= int.from_bytes(part.compute_bitmask(), "little")
        if self._check() or (not allowed and others and self._let_go(len(self._parts) - 1)):
            return self.mask()
        return BitMask(allowed.to_bytes(len(bits), "little"))

    def advance(self, id: int) -> None:
        """Take `id` in. Raises GenerationFailed if it may not come."""
        self._left = {index: num_ids + 1 for index, num_ids in self._left.items()}
        for index, part in enumerate(self._parts):
            if index in self._left or part.try_consume_tokens([id]) == 1:
                continue
            if not self._let_go(index, num_ids=1):
                part.consume_token(id)  # which makes it fail, and say why
        self._check()

    def takes(self, ids: Sequence[int]) -> bool:
        """Take `ids` in, if they may come; if not, some of them may have been."""
        return all(part.try_consume_tokens(list(ids)) == len(ids) for part in self._holding())

    def rollback(self, n: int) -> None:
        """Take the last `n` ids back. Raises GenerationFailed."""
        for index, part in enumerate(self._parts):
            num_ids = self._left.get(index, 0)
            if num_ids > n or part.is_error():
                self._left[index] = max(0, num_ids - n)
                continue
            self._left.pop(index, None)
            if num_ids < n:
                part.rollback(n - num_ids)
        self._check()

    def copy(self) -> Matcher:
        """The same place, to go on from separately: 0.1 ms."""
        assert not self._left
        return Matcher([part.deep_copy() for part in self._parts], is_strict=self._is_strict)

    def _holding(self) -> list[LLMatcher]:
        return [part for index, part in enumerate(self._parts) if index not in self._left]

    def _check(self) -> bool:
        """Let go what broke down: whether anything did. Raises GenerationFailed."""
        broken = [index for index, part in enumerate(self._parts)
            if index not in self._left and part.is_error()]  # fmt: skip
        for index in broken:
            if not self._let_go(index):
                raise GenerationFailed(f"the grammar failed: {self._parts[index].get_error():.200}")
        return bool(broken)

    def _let_go(self, index: int, num_ids: int = 0) -> bool:
        """Go on without a part, if that may be; `num_ids` came that it did not take in."""
        is_needed = self._is_strict and index == 0
        if is_needed or index in self._left or len(self._left) + 1 == len(self._parts):
            return False
        self._left[index] = num_ids
        return True
