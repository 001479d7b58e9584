"""Places where a tokenizer cuts a text, whatever may follow them.

The ids of a text that grows change at its end: `wor` and `ld` are no `world`. What does
not change are the ids in front of a place where every tokenizer of our kinds cuts: between
a letter or digit and the space or punctuation behind it. *Before* such a place, not after:
white space, punctuation and apostrophes may still be joined by what follows.

Which characters cut is found by trying them on the tokenizer itself, in many a company.
That is evidence and no proof, and need not be more: who shares ids by such a place
compares them. Knows characters and an encoder; who asks is `tokenizer.py`.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Final

import tokenizers

# Apostrophes are not among them: in `we'll` some tokenizers cut, others do not.
MAY_CUT: Final = frozenset(' \n\t\r!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~，。、；：？！「」（）…—“”')
HEADS: Final = ("", "x ")
WORDS: Final = ("a", "Z", "é", "я", "你", "한", "5", "٣", "½")
TAILS: Final = ("", "a", "1", " ", "\n", "'s", "\u0301", "。")


class Encoded:
    """The ids of a text; where they stand in it is worked out if somebody asks."""

    def __init__(self, encoding: tokenizers.Encoding) -> None:
        self.ids: list[int] = encoding.ids
        self._encoding = encoding

    @cached_property
    def starts(self) -> list[int]:
        """For each id the place of the first character it writes, as `Tokenizer.starts`."""
        return [start for start, _ in self._encoding.offsets]

    def num_before(self, place: int) -> int:
        """How many ids begin before this place of the text."""
        return bisect_left(self.starts, place)


def last_cut(text: str, start: int, end: int, cuts_before: Callable[[str], bool]) -> int | None:
    """The last place after `start` where `text[:end]` is cut, whatever comes behind `end`."""
    for place in range(end - 1, start, -1):
        if text[place] in MAY_CUT and is_word(text[place - 1]) and cuts_before(text[place]):
            return place
    return None


def is_word(character: str) -> bool:
    """Whether it is a letter or a digit in every version of Unicode that matters."""
    return unicodedata.ucd_3_2_0.category(character)[0] in "LN"


def always_cuts(encode: Callable[[str], tokenizers.Encoding], character: str) -> bool:
    """Whether there is a cut before `character` behind every word that is tried."""
    for head, word in product(HEADS, WORDS):
        before = head + word
        tried = [_ids_before(encode(before + character + tail), len(before)) for tail in TAILS]
        if tried[0] is None or any(ids != tried[0] for ids in tried):
            return False
    return True


def _ids_before(encoding: tokenizers.Encoding, place: int) -> list[int] | None:
    """The ids of what is before `place`, if they share no part with what is behind it."""
    number = sum(start < place for start, _ in encoding.offsets)
    words = encoding.word_ids
    is_cut = 0 < number < len(words) and words[number - 1] != words[number]
    return encoding.ids[:number] if is_cut else None
