"""A grammar tried out before anybody is held to it: it goes on, or the way it goes comes to an end.

Some grammars compile and break down at their first mask, or lead where nothing can follow.
So the shortest reply that blind choices find is written, as far as a bound: whatever closes
something is taken first. Knows the engine and masks, no schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_STEPS: Final = 64  # 0.1 ms each, or a few in free text
CLOSING: Final = rb'["\]}0]'


def dead_end(matcher: LLMatcher, vocabulary: Vocabulary) -> str:
    """What the engine says where a reply in `matcher` breaks down; "" if it goes on.

    `matcher` is advanced.
    """
    for _ in range(MAX_STEPS):
        bits = matcher.compute_bitmask()
        if matcher.is_error():
            return matcher.get_error()
        allowed = BitMask(bits)
        if any((allowed & vocabulary.ends).bits):
            return ""
        closing = _first(allowed & vocabulary.matching(CLOSING))
        id = _first(allowed) if closing is None else closing
        if id is None:
            return "Unsatisfiable schema: nothing can follow what it begins with"
        if matcher.try_consume_tokens([id]) != 1:
            return matcher.get_error() or "it does not take what it allows"
    return ""


def _first(mask: BitMask) -> int | None:
    number = int.from_bytes(mask.bits, "little")
    return (number & -number).bit_length() - 1 if number else None
