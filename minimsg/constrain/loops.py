"""A way out for models that go in circles.

Small models repeat a sentence in a string, or an item of a list, until `max_tokens` cuts
them, and what they wrote is of no use to anybody. Where the same ids have come again and
again, the string is ended, or the list after a whole item, if the grammar allows. That a
circle was wanted (two hundred zeros) nobody can tell, so nothing is done before the last
quarter of `max_tokens`. Lists of numbers are left alone: a grid of zeros is no circle.
Knows ids, and how tokens begin.
"""

from __future__ import annotations

from typing import Final

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask

MIN_IDS: Final = 160  # that are the same as those before them
MIN_IDS_AGAIN: Final = 32  # once the reply was led out of a circle
MIN_TURNS: Final = 8
MAX_PERIOD: Final = 64
NUMBERS: Final = frozenset(b"0123456789+-.eE,[] \n")
# Beginnings of tokens; no JSON but that of a string goes on with the letter.
LETTER: Final = rb"z"
QUOTE: Final = rb'"'
LIST: Final = rb"[\]}]*\]"
BRACES: Final = rb"\}+$"  # where no token has the bracket as well, which comes next then
QUOTE_AND_LIST: Final = QUOTE + LIST
QUOTE_AND_BRACES: Final = rb'"\}*$'


class Circles:
    """What one reply repeats at its end.

    `_runs[p]` is the number of ids at its end that are each the same as the one p before.
    """

    def __init__(self, vocabulary: Vocabulary, patience: int) -> None:
        """Nothing is done before `patience` ids have come."""
        self._vocabulary = vocabulary
        self._patience = patience
        self._num_ids = 0
        self._min_ids = MIN_IDS
        self._ids: list[int] = []
        self._runs = [0] * (MAX_PERIOD + 1)
        self._is_leaving = False  # the last item has ended, its list has not

    def push(self, id: int) -> None:
        """`id` was committed."""
        self._ids.append(id)
        self._num_ids += 1
        if b"]" in self._vocabulary.tokenizer.token_bytes(id):
            self._is_leaving = False
        for period in range(1, min(MAX_PERIOD + 1, len(self._ids))):
            is_same = self._ids[-1 - period] == id
            self._runs[period] = self._runs[period] + 1 if is_same else 0

    def rollback(self, n: int) -> None:
        """The last `n` ids were taken back."""
        ids = self._ids[: len(self._ids) - n]
        self._ids, self._runs = [], [0] * (MAX_PERIOD + 1)
        self._is_leaving = False
        self._min_ids = MIN_IDS
        self._num_ids -= n + len(ids[-MIN_TURNS * MAX_PERIOD :])  # which are counted again
        for id in ids[-MIN_TURNS * MAX_PERIOD :]:
            self.push(id)

    def way_out(self, mask: BitMask) -> BitMask:
        """What of `mask` would end what repeats, if it has repeated for too long; else `mask`."""
        if self._num_ids < self._patience:
            return mask
        runs = enumerate(self._runs)
        period = next((p for p, run in runs if p and run >= self._limit(p)), None)
        if period is None and not self._is_leaving:
            return mask
        is_text = any((mask & self._vocabulary.matching(LETTER)).bits)
        for ending in self._endings(period, is_text=is_text):
            narrowed = mask & self._vocabulary.matching(ending)
            if any(narrowed.bits):
                self._is_leaving = ending in (QUOTE_AND_BRACES, BRACES)
                self._min_ids = MIN_IDS_AGAIN
                return narrowed
        return mask

    def _endings(self, period: int | None, *, is_text: bool) -> tuple[bytes, ...]:
        """How tokens begin that end the string or list here, if this is a place for it."""
        if period is None:
            return () if is_text else (LIST, BRACES)
        token_bytes = self._vocabulary.tokenizer.token_bytes
        circle = b"".join(map(token_bytes, self._ids[-period:]))
        after = token_bytes(self._ids[-period])  # what the circle goes on with
        if is_text and b'"' not in circle:
            return (QUOTE,) if after.startswith(b" ") or b" " not in circle else ()
        if is_text:
            return (QUOTE_AND_LIST, QUOTE_AND_BRACES) if after.startswith(b'"') else ()
        is_place = after.startswith((b"}", b"]", b",")) and not NUMBERS.issuperset(circle)
        return (LIST, BRACES) if is_place else ()

    def _limit(self, period: int) -> int:
        return max(self._min_ids, MIN_TURNS * period) - period


def patience(max_tokens: int) -> int:
    """How many ids come before a circle is one that `max_tokens` is about to cut."""
    return max_tokens * 3 // 4
