"""A way out for models that go in circles.

Small models repeat a sentence in a string, or an item of a list, until `max_tokens` cuts
them, and what they wrote is of no use to anybody. That a circle was wanted (two hundred
zeros) nobody can tell, so nothing is done before the last eighth of `max_tokens`. From there
on a reply whose ids have come again and again, or whose items do no more than count, is
brought to its end: the string that repeats is ended after a word, and lists and objects where
the grammar allows. Lists of numbers are left alone: a grid of zeros is no circle.
Knows ids, and how tokens begin.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import pairwise
from typing import Final

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask

MIN_IDS: Final = 160  # of the same, over and over
MIN_IDS_AGAIN: Final = 32  # once the reply was in a circle
MIN_TURNS: Final = 4
MAX_PERIOD: Final = 128
MIN_ITEMS: Final = 8  # that count
COUNTERS: Final = range(1, 9)  # numbers in one item
WINDOW: Final = MAX_PERIOD * MIN_TURNS
NUMBER: Final = re.compile(r"(-?\d{1,15}(?:\.\d{1,15})?)")
NUMBERS: Final = frozenset(b"0123456789+-.eE,[] \n")
# Beginnings of tokens; no JSON but that of a string goes on with the letter.
LETTER: Final = rb"z"
DIGIT: Final = rb"[0-9]"
QUOTE: Final = rb'"'
LIST: Final = rb"[\]}]*\]"
BRACES: Final = rb"\}+$"  # where no token has the bracket as well, which comes next then
NO_OTHER: Final = rb'(?s:(?!.*"[\]}]*,))'  # goes to no other item


class Circles:
    """What one reply repeats at its end."""

    def __init__(self, vocabulary: Vocabulary, patience: int) -> None:
        """Nothing is done before `patience` ids have come."""
        self._vocabulary = vocabulary
        self._patience = patience
        self._ids: list[int] = []
        self._left_at: int | None = None  # how many ids had come when a circle was seen

    def push(self, id: int) -> None:
        """`id` was committed."""
        self._ids.append(id)

    def rollback(self, n: int) -> None:
        """The last `n` ids were taken back."""
        del self._ids[len(self._ids) - n :]
        if self._left_at is not None and self._left_at > len(self._ids):
            self._left_at = None

    def way_out(self, mask: BitMask) -> BitMask:
        """What of `mask` leads to the end of a reply that goes in circles; else `mask`."""
        if len(self._ids) < self._patience:
            return mask
        is_text = self._has(mask, LETTER)
        circle = self._circle()
        if self._left_at is None:
            is_seen = circle is not None and (is_text or not NUMBERS.issuperset(circle))
            if not is_seen and (is_text or not self._counts(mask)):
                return mask
            self._left_at = len(self._ids)
        for ending in self._endings(mask, circle, is_text=is_text):
            if self._has(mask, ending):
                return mask & self._vocabulary.matching(ending)
        return mask

    def _endings(self, mask: BitMask, circle: bytes | None, *, is_text: bool) -> tuple[bytes, ...]:
        """How tokens begin that lead to the end from here."""
        if not is_text:
            is_half = self._has(mask, DIGIT) and not self._counts(mask)
            return () if is_half else (LIST, BRACES)
        if circle is None or b'"' in circle:
            return (NO_OTHER,)
        is_place = circle.startswith(b" ") or b" " not in circle
        return (QUOTE + LIST, QUOTE + BRACES, QUOTE) if is_place else ()

    def _circle(self) -> bytes | None:
        """The text of the ids that have come again and again, the next one first; or None."""
        ids = self._ids[-WINDOW:]
        least = MIN_IDS if self._left_at is None else MIN_IDS_AGAIN
        for period in range(1, min(MAX_PERIOD, len(ids) // MIN_TURNS) + 1):
            if ids[-1] != ids[-1 - period]:
                continue
            num_ids = max(least, MIN_TURNS * period)
            if len(ids) >= num_ids and ids[-num_ids:-period] == ids[period - num_ids :]:
                return b"".join(map(self._vocabulary.tokenizer.token_bytes, ids[-period:]))
        return None

    def _counts(self, mask: BitMask) -> bool:
        """Whether the items before the end of one differ in numbers that count, if at all."""
        if not (self._has(mask, LIST) or self._has(mask, BRACES)):
            return False
        token_bytes = self._vocabulary.tokenizer.token_bytes
        text = b"".join(map(token_bytes, self._ids[-WINDOW:])).decode(errors="replace")
        *pieces, _ = NUMBER.split(text)  # text and number in turn
        between, numbers = pieces[::2], [Decimal(number) for number in pieces[1::2]]
        return any(_is_progress(between, numbers, size) for size in COUNTERS)

    def _has(self, mask: BitMask, beginning: bytes) -> bool:
        return any((mask & self._vocabulary.matching(beginning)).bits)


def _is_progress(between: list[str], numbers: list[Decimal], size: int) -> bool:
    """Whether the last items, of `size` numbers each, go on by the same steps."""
    num_numbers = size * MIN_ITEMS
    if len(numbers) <= num_numbers:
        return False
    items = [between[-num_numbers:][n::size] for n in range(size)]
    if any(len(set(same)) > 1 for same in items) or not any('"' in same[0] for same in items):
        return False
    counters = [numbers[-num_numbers:][n::size] for n in range(size)]
    return all(map(_is_counting, counters))


def _is_counting(counter: list[Decimal]) -> bool:
    """Whether it goes on by the same step, and its last number is as long as the others."""
    steps = {after - before for before, after in pairwise(counter)}
    return len(steps) == 1 and len({number.as_tuple().exponent for number in counter}) == 1


def patience(max_tokens: int) -> int:
    """How many ids come before a circle is one that `max_tokens` is about to cut."""
    return max_tokens * 7 // 8
