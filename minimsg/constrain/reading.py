"""A reply while it is generated, read by the parser that reads it for the client.

What is a call and what is thinking, nobody can say but the parser, so a hook that depends
on it reads along. Knows what is open at this moment, not what may come next (`lazy.py`,
`budget.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minimsg.parsing.calls import CallReader, Outcome, Tools
from minimsg.parsing.formats import NONE, PARSERS
from minimsg.parsing.markup import MarkupParser
from minimsg.parsing.segments import Segment, ToolCallEnd, ToolCallInput, ToolCallStart
from minimsg.parsing.thinking import ThinkingTags
from minimsg.text.detokenize import Detokenizer
from minimsg.text.tokenizer import Tokenizer


@dataclass
class Call:
    """A call that the model has begun.

    `head` is what it wrote until that was certain, from the tag on or from the call
    before; `rest` is what it wrote since, and `input` the JSON that the parser made of it.
    """

    name: str
    head: str
    rest: str = ""
    input: str = ""
    is_open: bool = True


class Reading:
    """One reply, id by id."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        format: str,
        tools: Tools,
        thinking: ThinkingTags | None = None,
        *,
        continues: bool = False,
    ) -> None:
        self.calls: list[Call] = []
        self._format = PARSERS[format] if tools else NONE
        self._parser = MarkupParser(replace(self._format, reader=self._observed), tools, thinking)
        self._detokenizer = Detokenizer(tokenizer, continues=continues, tags=self._parser.tags)

    @property
    def is_thinking(self) -> bool:
        """Whether what comes next is thinking, unless it is a tag."""
        return self._parser.is_thinking

    def push(self, id: int) -> None:
        """`id` was committed, and ends no turn."""
        self._parser.push(self._detokenizer.push(id))

    def _observed(self, opening: str, tools: Tools) -> CallReader:
        return _Observer(self._format.reader(opening, tools), self.calls)


class _Observer:
    """Passes on what a reader is given and what it says, and notes calls in `calls`."""

    def __init__(self, reader: CallReader, calls: list[Call]) -> None:
        self._reader = reader
        self._calls = calls
        self._call: Call | None = None  # the one that is open
        self._head = ""
        self._segments: list[Segment] = []

    def push(self, character: str) -> Outcome:
        outcome = self._reader.push(character)
        is_read = outcome in (Outcome.MAYBE, Outcome.CALL)
        if is_read and self._call is None:
            self._head += character
        elif is_read and self._call is not None:
            self._call.rest += character
        segments = self._reader.take()
        for segment in segments:
            self._note(segment)
        self._segments += segments
        return outcome

    def take(self) -> list[Segment]:
        taken, self._segments = self._segments, []
        return taken

    def flush(self, *, is_cut: bool) -> list[Segment]:
        return [*self.take(), *self._reader.flush(is_cut=is_cut)]

    def _note(self, segment: Segment) -> None:
        if isinstance(segment, ToolCallStart):
            self._call = Call(segment.name, self._head)
            self._calls.append(self._call)
        elif self._call is not None and isinstance(segment, ToolCallInput):
            self._call.input += segment.fragment
        elif self._call is not None and isinstance(segment, ToolCallEnd):
            self._call.is_open = False
            self._call, self._head = None, ""
