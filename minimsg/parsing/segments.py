"""The third of the four levels of output: Token -> text -> `Segment` -> Event.

A segment says what a stretch of the model's text *is*; the event builder
(`protocol/build.py`) turns segments into content blocks. Parsers that find
segments in text live beside this file and have the two verbs `push` and `flush`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Visible text, never empty; consecutive ones belong to the same content block."""

    text: str


Segment = TextSegment


class Parser(Protocol):
    """Model text in, segments out, the same whatever way the text was cut into pieces."""

    def push(self, text: str) -> list[Segment]:
        """Segments that are certain after `text`; may hold some of it back."""

    def flush(self) -> list[Segment]:
        """What was held back, now that no more text comes."""


class PlainParser:
    """All text is visible text: the format of a model without markup."""

    def push(self, text: str) -> list[Segment]:
        return [TextSegment(text)] if text else []

    def flush(self) -> list[Segment]:
        return []
