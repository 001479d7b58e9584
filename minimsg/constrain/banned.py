"""Ids that never come: tags that would begin a call where the request forbids calls.

A model that was told of tools then answers in words, as the hosted API's do. A tag that is
text and no token of its own may still be written; `parsing/spoken.py` reads that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask


class BannedTags:
    """Allows any id but the control tokens among `tags`; remembers nothing."""

    name = "no calls"

    def __init__(self, tags: Iterable[str], vocabulary: Vocabulary) -> None:
        control = vocabulary.tokenizer.control
        banned = {control[tag] for tag in tags if tag in control}
        self._mask = _all_but(banned, vocabulary) if banned else None

    def mask(self) -> BitMask | None:
        return self._mask

    def forced(self) -> int | None:
        return None

    def advance(self, id: int) -> None:
        pass

    def rollback(self, n: int) -> None:
        pass


def _all_but(ids: Collection[int], vocabulary: Vocabulary) -> BitMask:
    size = max(vocabulary.tokenizer.vocab_size, *(id + 1 for id in vocabulary.end_ids))
    bits = bytearray(b"\xff") * (size // 8) + bytes([(1 << size % 8) - 1])
    for id in ids:
        bits[id // 8] &= ~(1 << id % 8)
    return BitMask(bytes(bits))
