"""Texts cut into pieces, and segments written short and joined again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from minimsg.parsing.calls import CallableTool
from minimsg.parsing.formats import parser_for
from minimsg.parsing.segments import (
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.parsing.thinking import ThinkingTags

Table = dict[str, tuple[str, list[Segment]]]  # a title: a text, and what it is

TOOLS = {
    "now": CallableTool(),
    "add": CallableTool(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "integer"},
                "note": {"type": "string"},
            },
        }
    ),
    "write": CallableTool(
        {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}},
        is_eager=True,
    ),
    "held": CallableTool(
        {"properties": {"note": {"type": "string"}, "a": {"type": "integer"}}}, is_held=True
    ),
}


def text(text: str) -> list[Segment]:
    return [TextSegment(text)]


def thinking(text: str) -> list[Segment]:
    return [ThinkingSegment(text)]


def call(name: str, *fragments: str) -> list[Segment]:
    """A whole call."""
    return [*cut_call(name, *fragments), ToolCallEnd()]


def cut_call(name: str, *fragments: str) -> list[Segment]:
    """A call that has no end."""
    return [ToolCallStart(name), *map(ToolCallInput, fragments)]


def parsed(
    name: str, pieces: Iterable[str], thinking: ThinkingTags | None = None, *, is_cut: bool = False
) -> list[Segment]:
    """The segments of `pieces`, as they come."""
    parser = parser_for(name, TOOLS, thinking)
    segments = [segment for piece in pieces for segment in parser.push(piece)]
    return segments + parser.flush(is_cut=is_cut)


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """`segments` with neighbours of the same kind made one."""
    whole: list[Segment] = []
    for kind, run in groupby(segments, key=type):
        neighbours = list(run)
        if kind is ToolCallInput:
            whole.append(ToolCallInput("".join(map(piece_of, neighbours))))
        elif kind in (TextSegment, ThinkingSegment):
            whole.append(kind("".join(map(piece_of, neighbours))))
        else:
            whole += neighbours
    return whole


def piece_of(segment: Segment) -> str:
    """The text, thinking or JSON of a segment; "" of one that has none."""
    match segment:
        case TextSegment(piece) | ThinkingSegment(piece) | ToolCallInput(piece):
            return piece
    return ""


def splits(text: str) -> Iterator[list[str]]:
    """`text` whole, in single characters, in two at every place, in pieces of 2 to 9."""
    yield [text]
    for size in range(1, 10):
        for offset in range(size):
            starts = range(offset, len(text), size)
            yield [text[:offset], *(text[start : start + size] for start in starts)]
    for place in range(1, len(text)):
        yield [text[:place], text[place:]]
