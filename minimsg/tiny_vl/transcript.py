"""A conversation as it is written for learning: ids, positions, and what may see what.

Knows the template's tokens, and the rotary positions of pictures (`engine/places.py` says the
same of the engine's). What is said is up to `lessons.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from tokenizers import Tokenizer

from minimsg.tiny_vl.vocabulary import ASSISTANT, IMAGE_END, IMAGE_PAD, IMAGE_START, TURN_END


@dataclass
class Transcript:
    """One row of a batch while it is written: its tokens, with all that is to be known of each."""

    tokenizer: Tokenizer
    size: tuple[int, int]  # of a picture, in tokens: rows, columns
    ids: list[int] = field(default_factory=list)
    axes: list[tuple[int, int, int]] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)  # 0: every later token sees it
    is_learned: list[bool] = field(default_factory=list)
    position: int = 0  # of the next token
    branch: int = 0

    def write(self, *parts: str, is_learned: bool = False) -> None:
        """Each part is a control token, or a text between two."""
        for part in parts:
            for id in encoded(self.tokenizer, part):
                self._put(id, (self.position,) * 3, is_learned)
                self.position += 1

    def show(self) -> None:
        """A picture, between its two control tokens."""
        self.write(IMAGE_START)
        (pad,) = encoded(self.tokenizer, IMAGE_PAD)
        rows, columns = self.size
        for row in range(rows):
            for column in range(columns):
                place = (self.position, self.position + row, self.position + column)
                self._put(pad, place, False)
        self.position += max(rows, columns)
        self.write(IMAGE_END)

    def answer(self, text: str) -> None:
        """The end of a question, and the reply."""
        self.write(TURN_END, ASSISTANT)
        self.write(text, TURN_END, is_learned=True)

    def _put(self, id: int, place: tuple[int, int, int], is_learned: bool) -> None:
        self.ids.append(id)
        self.axes.append(place)
        self.branches.append(self.branch)
        self.is_learned.append(is_learned)


@lru_cache(maxsize=1 << 14)
def encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a control token, or of a text between two."""
    ids: list[int] = tokenizer.encode(text).ids
    return ids
