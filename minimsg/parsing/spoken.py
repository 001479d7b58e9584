"""Calls that the request does not allow (`tool_choice: none`), as text: no tags, no block.

A model that was told of tools may call them all the same. What it wrote is not lost, and
no markup is shown: each call is a line of JSON, the same in every format. Wraps the parser
of the format; knows nothing of how calls are written.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from minimsg.parsing.segments import (
    Parser,
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)


class SpokenCalls:
    """A parser whose calls are text."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._gap = ""  # before a call: it begins a line
        self._is_after_call = False

    @property
    def tags(self) -> Collection[str]:
        return self._parser.tags

    @property
    def is_thinking(self) -> bool:
        return self._parser.is_thinking

    @property
    def is_holding(self) -> bool:
        return self._parser.is_holding

    @property
    def held_space(self) -> str:
        return self._parser.held_space

    def push(self, text: str) -> list[Segment]:
        return [self._spoken(segment) for segment in self._parser.push(text)]

    def flush(self, *, is_cut: bool) -> list[Segment]:
        return [self._spoken(segment) for segment in self._parser.flush(is_cut=is_cut)]

    def _spoken(self, segment: Segment) -> Segment:
        match segment:
            case ToolCallStart(name):
                return TextSegment(f'{self._gap}{{"name": {json.dumps(name)}, "arguments": ')
            case ToolCallInput(fragment):
                return TextSegment(fragment)
            case ToolCallEnd():
                self._gap, self._is_after_call = "\n", True
                return TextSegment("}")
            case TextSegment(text):
                before = "\n" if self._is_after_call else ""
                self._gap, self._is_after_call = "\n", False
                return TextSegment(before + text)
            case ThinkingSegment():
                self._gap, self._is_after_call = "", False
        return segment
