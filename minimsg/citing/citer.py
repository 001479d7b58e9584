"""Segments to segments: text becomes sentences, each with the passages that it was taken from.

A sentence is held back until it has ended, since only then its sources are known. Text
without any goes on as text; all else passes, after what was held back. Has the verbs `push`
and `flush` of every stage; next: `protocol/build.py`.
"""

from __future__ import annotations

from minimsg.citing.attribution import Index, sources_of
from minimsg.citing.sentences import SentenceSplitter
from minimsg.parsing.segments import CitedSegment, Segment, TextSegment


class Citer:
    """The citations of one reply."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._splitter = SentenceSplitter()

    def push(self, segment: Segment) -> list[Segment]:
        """The sentences that are complete; all that is no text."""
        if not isinstance(segment, TextSegment):
            return [*self.flush(), segment]
        return [self._cited(sentence) for sentence in self._splitter.push(segment.text)]

    def flush(self) -> list[Segment]:
        """The sentence that nothing follows."""
        rest = self._splitter.flush()
        return [self._cited(rest)] if rest else []

    def _cited(self, sentence: str) -> Segment:
        sources = sources_of(sentence, self._index)
        if not sources:
            return TextSegment(sentence)
        return CitedSegment(sentence, tuple(passage.citation for passage in sources))
