"""Segments to segments: text becomes sentences, each with the passages that it was taken from.

A sentence is held back until it has ended, since only then its sources are known. Text
without any goes on as text; all else passes, after what was held back. What the tokens of a
sentence have attended to is told before their text (`attend`). Has the verbs `push` and
`flush` of every stage; next: `protocol/build.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from minimsg.citing.attribution import Index, sources_of
from minimsg.citing.sentences import SentenceSplitter
from minimsg.parsing.segments import CitedSegment, Segment, TextSegment


class Citer:
    """The citations of one reply."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._splitter = SentenceSplitter()
        self._num_pushed = 0  # characters of text
        self._num_passed = 0  # of complete sentences
        self._attended: deque[tuple[int, Sequence[float]]] = deque()  # by where a token begins

    def attend(self, attended: Sequence[float]) -> None:
        """What the token paid to each passage whose text comes next; nothing if nobody looked."""
        if attended:
            self._attended.append((self._num_pushed, attended))

    def push(self, segment: Segment) -> list[Segment]:
        """The sentences that are complete; all that is no text."""
        if not isinstance(segment, TextSegment):
            flushed = self.flush()
            self._attended.clear()
            return [*flushed, segment]
        self._num_pushed += len(segment.text)
        return [self._cited(sentence) for sentence in self._splitter.push(segment.text)]

    def flush(self) -> list[Segment]:
        """The sentence that nothing follows."""
        rest = self._splitter.flush()
        return [self._cited(rest)] if rest else []

    def _cited(self, sentence: str) -> Segment:
        self._num_passed += len(sentence)
        sources = sources_of(sentence, self._index, self._attention())
        if not sources:
            return TextSegment(sentence)
        return CitedSegment(sentence, tuple(passage.citation for passage in sources))

    def _attention(self) -> list[float]:
        """What the tokens of the sentence that has just passed have paid to each passage."""
        rows: list[Sequence[float]] = []
        while self._attended and self._attended[0][0] < self._num_passed:
            rows.append(self._attended.popleft()[1])
        return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
