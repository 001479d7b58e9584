"""Stop sequences, found in visible text while it streams.

The match that completes first wins, as soon as its last character is there: waiting for
a longer or an earlier one would compute tokens after the reply has ended. Of several
that complete at the same character the longest wins. What might still become a match is
held back, so that no part of a stop sequence is ever shown.

8,192 sequences of 4,096 characters must not slow a reply down, and an Aho-Corasick
automaton of 33 million nodes is out of reach. Two sorted lists do the same: `held` is the
longest suffix of the text that begins some sequence (a prefix query), and a sequence has
completed iff it ends `held` (a prefix query on the reversed strings). Each costs a
binary search a character, and `held` only ever moves on, whatever the text.

Knows segments, not tokens or events. Next: `protocol/build.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from copy import copy

from minimsg.parsing.segments import Segment, TextSegment


class StopMatcher:
    """The stop sequences of one reply. After a hit it passes nothing on."""

    def __init__(self, sequences: Sequence[str]) -> None:
        assert all(sequences), "an empty stop sequence matches everywhere"
        self._sorted = sorted(set(sequences))
        self._firsts = {sequence[0] for sequence in sequences}
        self._lasts = {sequence[-1] for sequence in sequences}
        self._reversed = sorted(sequence[::-1] for sequence in self._sorted)
        self._shortest = _shortest_prefixes(self._reversed)
        self._held = ""  # begins some sequence, completes none
        self._hit: str | None = None

    @property
    def hit(self) -> str | None:
        """The sequence that ended the reply, or None so far."""
        return self._hit

    def push(self, segment: Segment) -> list[Segment]:
        """Text before the match, less what may still become one; all that is no text.

        A match does not reach over thinking or a tool call: what is held comes before it.
        """
        if self._hit is not None:
            return []
        if not isinstance(segment, TextSegment):
            return [*self.flush(), segment]
        shown: list[str] = []
        for character in segment.text:
            shown.append(self._next(character))
            if self.hit is not None:
                break
        return _segments("".join(shown))

    def completes_in(self, text: str) -> bool:
        """Whether a sequence would complete if `text` came next."""
        if self._hit is not None or self._lasts.isdisjoint(text):
            return False
        ahead = copy(self)
        ahead.push(TextSegment(text))
        return ahead.hit is not None

    def flush(self) -> list[Segment]:
        """The beginning of a match that never came."""
        held, self._held = self._held, ""
        return _segments(held)

    def _next(self, character: str) -> str:
        """Text that can be shown, now that `character` has come."""
        if not self._held and character not in self._firsts:
            return character
        text = self._held + character
        start = 0
        while start < len(text) and not self._begins_some(text[start:]):
            start += 1
        self._held = text[start:]
        if character in self._lasts and (match := self._longest_match(self._held)):
            self._hit = match
            start = len(text) - len(match)
            self._held = ""
        return text[:start]

    def _begins_some(self, text: str) -> bool:
        if text[0] not in self._firsts:
            return False
        place = bisect_left(self._sorted, text)
        return place < len(self._sorted) and self._sorted[place].startswith(text)

    def _longest_match(self, text: str) -> str | None:
        """The longest sequence that ends `text`.

        Reversed, such a sequence is a prefix of the entry that sorts last before the
        reversed text, and so is every shorter one: if the shortest prefix of that entry
        does not fit, none does.
        """
        backwards = text[::-1]
        place = bisect_right(self._reversed, backwards) - 1
        if place < 0 or not backwards.startswith(self._shortest[place]):
            return None
        while not backwards.startswith(self._reversed[place]):
            place -= 1
        return self._reversed[place][::-1]


def _shortest_prefixes(ordered: list[str]) -> list[str]:
    """For each string of a sorted list, the shortest entry that begins it (maybe itself)."""
    shortest: list[str] = []
    for text in ordered:
        if shortest and text.startswith(shortest[-1]):
            shortest.append(shortest[-1])
        else:
            shortest.append(text)
    return shortest


def _segments(text: str) -> list[Segment]:
    return [TextSegment(text)] if text else []
