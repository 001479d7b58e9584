"""The third of the four levels of output: Token -> text -> `Segment` -> Event.

A segment says what a stretch of the model's text *is*; the event builder
(`protocol/build.py`) turns segments into content blocks. A tool call is a
`ToolCallStart`, its input piece by piece, and a `ToolCallEnd` if the model finished it.
Parsers find segments in text and have the two verbs `push` and `flush`; which there are
stands in `formats.py`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from minimsg.protocol.cited import ReplyCitation


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Visible text, never empty; consecutive ones belong to the same content block."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingSegment:
    """Text between thinking tags, never empty; consecutive ones are one block."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call begins: its tag and its name, which the request knows, are complete."""

    name: str


@dataclass(frozen=True, slots=True)
class ToolCallInput:
    """More of the input's JSON text, never empty.

    Whatever came so far is the beginning of a JSON object; with `ToolCallEnd` it is one.
    """

    fragment: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The call is complete. A call that `max_tokens` cuts has no end."""


@dataclass(frozen=True, slots=True)
class CitedSegment:
    """Visible text that was taken from somewhere, a content block of its own.

    No parser makes it: `citing/citer.py` does, of text.
    """

    text: str
    citations: tuple[ReplyCitation, ...]


Segment = TextSegment | ThinkingSegment | ToolCallStart | ToolCallInput | ToolCallEnd | CitedSegment


class Parser(Protocol):
    """Model text in, segments out, the same whatever way the text was cut into pieces."""

    @property
    def tags(self) -> Collection[str]:
        """What it looks for in text, so that no special token among it may be hidden."""

    @property
    def is_thinking(self) -> bool:
        """Whether what came last is thinking, as far as is certain."""

    @property
    def is_holding(self) -> bool:
        """Whether what came last may still become a tag."""

    @property
    def held_space(self) -> str:
        """White space at the end of visible text, which is shown unless a tag follows."""

    def push(self, text: str) -> list[Segment]:
        """Segments that are certain after `text`; may hold some of it back."""

    def flush(self, *, is_cut: bool) -> list[Segment]:
        """What was held back, now that no more text comes.

        `is_cut`: something other than the model ended the reply, such as `max_tokens`; a
        call that is open then stays without an end.
        """


class PlainParser:
    """All text is visible text: the format of a model without markup."""

    tags = ()
    is_thinking = False
    is_holding = False
    held_space = ""

    def push(self, text: str) -> list[Segment]:
        return [TextSegment(text)] if text else []

    def flush(self, *, is_cut: bool = False) -> list[Segment]:
        return []
