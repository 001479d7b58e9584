"""Text with markup to segments: visible text, thinking, tool calls.

At any time the parser stands in one of three: text, thinking, a call. In text and thinking
it looks for tags and asks what each means there (`Meaning`); in a call every character goes
to the reader of the format. The rules:

- Tags are never shown, nor is the white space that touches them.
- A call that never became one (no known name) is text, whole, its tags included.
- A tag is held back while it may still become one; `flush` gives it up.
- A call that something else cut before it began is dropped, its tag included; so is half a
  tag after a call. Nobody has a use for such markup.
- Each character is looked at a bounded number of times, whatever the text.

Knows no format (`calls.py` says what one is), no events, no stop sequences.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from minimsg.parsing.calls import Bare, CallReader, Format, Outcome, Tools
from minimsg.parsing.hold import WHITE_SPACE, Run, Tags, held_length
from minimsg.parsing.segments import Segment, TextSegment, ThinkingSegment
from minimsg.parsing.thinking import ThinkingTags

BRACKETS: Final = ("{", "[")  # what opens a call in formats whose calls need no tag


class Meaning(Enum):
    """What a tag says where it stands."""

    TEXT = auto()  # nothing: it is shown
    THINKING = auto()  # what follows is thinking
    ANSWER = auto()  # what follows is text
    CALL = auto()  # what follows may be a call


class MarkupParser:
    """The parser of one reply: a format of calls, tags around thinking, or both."""

    def __init__(self, format: Format, tools: Tools, thinking: ThinkingTags | None = None) -> None:
        self.tags = _tags(format, thinking)
        self._finder = Tags(self.tags)
        self._format = format
        self._tools = tools
        self._thinking = thinking
        self._is_thinking = thinking is not None and thinking.is_opened
        self._run = Run(touches_tag=self._is_thinking)
        self._reader: CallReader | None = None
        self._maybe: list[str] = []  # what it has read that is text if no call comes of it
        self._held = ""  # may become a tag
        self._is_skipping = False  # after a call that broke, up to the next tag
        self._follows_call = False  # nothing was shown since one
        self._shows_closing = False  # since the opening before it is text
        self._segments: list[Segment] = []

    @property
    def is_thinking(self) -> bool:
        """Whether what comes next is thinking, unless it is a tag."""
        return self._is_thinking

    @property
    def is_holding(self) -> bool:
        """Whether what came last may still become a tag."""
        return bool(self._held)

    @property
    def held_space(self) -> str:
        """White space at the end of visible text, which is shown unless a tag follows."""
        is_text = self._reader is None and not self._is_thinking and not self._is_skipping
        return self._run.flush() if is_text else ""

    def push(self, text: str) -> list[Segment]:
        text, self._held = self._held + text, ""
        position = 0
        while position < len(text):
            if self._reader is None:
                position = self._outside(text, position)
            else:
                text, position = self._inside(text, position)
        return self._take()

    def flush(self, *, is_cut: bool) -> list[Segment]:
        if self._reader is not None:
            self._segments += self._reader.flush(is_cut=is_cut)
            if self._maybe and self._is_lost(is_cut=is_cut):
                self._maybe = []
                self._run = Run(touches_tag=True)
            self._held = self._leave()
        self._show("" if self._follows_call else self._held)
        self._held = ""
        self._add(self._run.flush())
        return self._take()

    def _take(self) -> list[Segment]:
        if self._reader is not None:
            self._segments += self._reader.take()
        taken, self._segments = self._segments, []
        return taken

    def _outside(self, text: str, position: int) -> int:
        """Go on with text or thinking from `position`; returns where to go on after that."""
        start, tag = self._finder.find(text, position)
        self._show(text[position:start])
        if tag is None:
            self._held = text[start:]
            return len(text)
        self._at_tag(tag)
        return start + len(tag)

    def _inside(self, text: str, position: int) -> tuple[str, int]:
        """Go on with a call; returns where to go on after that, and in which text."""
        assert self._reader is not None
        for place in range(position, len(text)):
            outcome = self._reader.push(text[place])
            if outcome is Outcome.MAYBE:
                self._maybe.append(text[place])
            elif outcome is not Outcome.CALL:
                again = self._leave()
                self._is_skipping = outcome is Outcome.BROKEN
                return (again + text[place:], 0) if again else (text, place)
            elif self._maybe:  # a call has begun: the tag is one, and claims its white space
                self._maybe = []
                self._shows_closing = False
                self._follows_call = True
                self._run = Run(touches_tag=True)
        return text, len(text)

    def _at_tag(self, tag: str) -> None:
        match self._meaning(tag):
            case Meaning.CALL:
                self._enter(tag)
            case Meaning.TEXT:
                self._shows_closing = self._shows_closing and tag not in self._format.closings
                self._show(tag)
            case meaning:
                self._run = Run(touches_tag=True)
                self._follows_call = self._follows_call and tag in self._format.closings
                self._is_thinking = meaning is Meaning.THINKING
                self._is_skipping = False

    def _meaning(self, tag: str) -> Meaning:
        if self._thinking and tag == self._thinking.closing:
            return Meaning.ANSWER
        if self._thinking and tag == self._thinking.opening:
            begins = not self._is_thinking or self._run.is_blank  # prompts may have opened it
            return Meaning.THINKING if begins else Meaning.TEXT
        if self._is_thinking:
            return Meaning.TEXT
        if tag in BRACKETS:
            return Meaning.CALL if self._may_bracket_open() else Meaning.TEXT
        if tag in self._format.closings and self._shows_closing:
            return Meaning.TEXT
        return Meaning.CALL if tag in self._format.openings else Meaning.ANSWER

    def _may_bracket_open(self) -> bool:
        if self._is_skipping:
            return False
        is_line = self._format.bare is Bare.LINE
        return self._run.is_line_blank if is_line else self._run.is_blank

    def _enter(self, opening: str) -> None:
        """Read what follows: perhaps a call."""
        self._is_skipping = False
        self._reader = self._format.reader(opening, self._tools)
        self._maybe = [opening]
        if opening in BRACKETS:
            self._reader.push(opening)

    def _leave(self) -> str:
        """The reader is done: what was no call is text, but for its end that may begin a tag."""
        assert self._reader is not None
        self._segments += self._reader.take()
        self._reader = None
        if not self._maybe:
            return ""
        opening, rest = self._maybe[0], "".join(self._maybe[1:])
        self._maybe = []
        end = len(rest) - held_length(rest, self.tags)
        self._shows_closing = opening in self._format.openings
        self._show(opening + rest[:end])
        return rest[end:]

    def _is_lost(self, *, is_cut: bool) -> bool:
        """Whether what may have become a call is of no use to anybody as text."""
        opening, rest = self._maybe[0], "".join(self._maybe[1:])
        if self._follows_call:
            return is_cut or not rest.strip(WHITE_SPACE)
        return is_cut and opening.startswith("<")  # JSON without a tag may have been the answer

    def _show(self, text: str) -> None:
        if text and not self._is_skipping:
            self._follows_call = self._follows_call and not text.strip(WHITE_SPACE)
            self._add(self._run.push(text))

    def _add(self, text: str) -> None:
        if text:
            self._segments.append(ThinkingSegment(text) if self._is_thinking else TextSegment(text))


def _tags(format: Format, thinking: ThinkingTags | None) -> list[str]:
    tags = [*format.openings, *format.closings]  # a code fence is both
    if format.bare is not Bare.NOWHERE:
        tags += BRACKETS
    if thinking is not None:
        tags += [thinking.opening, thinking.closing]
    return tags
