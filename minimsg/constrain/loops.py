"""A way out for models that go in circles.

Small models repeat a sentence in a string, or an item of a list, until `max_tokens` cuts
them, and what they wrote is of no use to anybody. Where the same ids have come again and
again, the string is ended, or the list after a whole item, if the grammar allows. Lists
of numbers are left alone: a grid of zeros is no circle. Knows ids, and how tokens begin.
"""

from __future__ import annotations

from typing import Final

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask

MIN_IDS: Final = 160  # that are the same as those before them
MIN_TURNS: Final = 8
MAX_PERIOD: Final = 64
NUMBERS: Final = frozenset(b"0123456789+-.eE,[] \n")
# Beginnings of tokens; no JSON but that of a string goes on with the letter.
LETTER: Final = rb"z"
QUOTE: Final = rb'"'
LIST: Final = rb"[\]}]*\]"
QUOTE_AND_LIST: Final = QUOTE + LIST


class Circles:
    """What one reply repeats at its end.

    `_runs[p]` is the number of ids at its end that are each the same as the one p before.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ids: list[int] = []
        self._runs = [0] * (MAX_PERIOD + 1)

    def push(self, id: int) -> None:
        """`id` was committed."""
        self._ids.append(id)
        for period in range(1, min(MAX_PERIOD + 1, len(self._ids))):
            is_same = self._ids[-1 - period] == id
            self._runs[period] = self._runs[period] + 1 if is_same else 0

    def rollback(self, n: int) -> None:
        """The last `n` ids were taken back."""
        ids = self._ids[: len(self._ids) - n]
        self._ids, self._runs = [], [0] * (MAX_PERIOD + 1)
        for id in ids[-MIN_TURNS * MAX_PERIOD :]:
            self.push(id)

    def way_out(self, mask: BitMask) -> BitMask:
        """What of `mask` would end what repeats, if it has repeated for too long; else `mask`."""
        period = next((p for p, run in enumerate(self._runs) if p and run >= _limit(p)), None)
        if period is None:
            return mask
        token_bytes = self._vocabulary.tokenizer.token_bytes
        circle = b"".join(map(token_bytes, self._ids[-period:]))
        after = token_bytes(self._ids[-period])  # what the circle goes on with
        ending = self._ending(circle, after, is_text=self._allows(mask, LETTER))
        return mask & ending if ending and any((mask & ending).bits) else mask

    def _ending(self, circle: bytes, after: bytes, *, is_text: bool) -> BitMask | None:
        """Tokens that end the string or list here, if this is a place for it."""
        if is_text and b'"' not in circle:
            is_place = after.startswith(b" ") or b" " not in circle
            return self._vocabulary.matching(QUOTE) if is_place else None
        if is_text:
            return self._vocabulary.matching(QUOTE_AND_LIST) if after.startswith(b'"') else None
        is_place = after.startswith((b"}", b"]", b",")) and not NUMBERS.issuperset(circle)
        return self._vocabulary.matching(LIST) if is_place else None

    def _allows(self, mask: BitMask, pattern: bytes) -> bool:
        return any((mask & self._vocabulary.matching(pattern)).bits)


def _limit(period: int) -> int:
    return max(MIN_IDS, MIN_TURNS * period) - period
