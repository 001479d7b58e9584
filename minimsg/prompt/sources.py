"""Where the tokens of a prompt come from: for each, the value that says its first character.

`spans.py` shows where each value stands in the rendered text, and the tokenizer's offsets
do the rest. What stands between two values of one block or tool, such as the braces of
its JSON, is that block's or tool's; all else is the template's.

Knows readings and tokens; who pays for them is in `bill.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.conversation import gap_before
from minimsg.prompt.encode import token_starts
from minimsg.prompt.marks import Marks, image_places
from minimsg.prompt.reading import Reading
from minimsg.prompt.spans import Search, Source, Span
from minimsg.prompt.values import Kind, block_of


def map_sources(reading: Reading, chat: ChatModel) -> list[Source | None]:
    """For each id of the prompt what it comes from; None: from the template."""
    assert chat.template is not None  # it has written the reading
    assert chat.traits is not None
    text = "".join(piece.text for piece in reading.pieces)
    starts = token_starts(reading.pieces, chat.tokenizer)
    search = Search(reading, chat.template, chat.traits)
    marks = chat.template.marks
    texts = {value.path: value.text for value in search.values if value.kind is Kind.TEXT}
    spans = [
        part
        for span in search.spans()
        for part in _between_images(span, texts.get(span.source.path, ""), marks)
    ]
    prefix_starts = chat.tokenizer.starts(reading.prefix, at_start=False)
    return [
        *_assigned(starts, len(text), spans),
        *_assigned(prefix_starts, len(reading.prefix), _prefix_spans(reading)),
    ]


def _between_images(span: Span, text: str, marks: Marks) -> list[Span]:
    """A span of the value `text`, cut at its images, which are longer than their markers."""
    source = span.source
    places = image_places(text[source.start : source.end])
    if not places or len(marks.shown(text[source.start : source.end])) != span.end - span.begin:
        return [span]
    cuts = sorted({source.start, source.end, *(source.start + place for place in places)})
    parts: list[Span] = []
    begin = span.begin
    for start, end in pairwise(cuts):
        length = len(marks.shown(text[start:end]))
        parts.append(Span(begin, begin + length, Source(source.path, start, end)))
        begin += length
    return parts


def _assigned(starts: Sequence[int], end: int, spans: Sequence[Span]) -> list[Source | None]:
    """For tokens that begin at `starts` of a text what they come from."""
    filled = _with_gaps_filled(spans)
    begins = [span.begin for span in filled]
    sources: list[Source | None] = []
    for begin, following in pairwise([*starts, end]):
        place = bisect_right(begins, begin) - 1
        is_inside = place >= 0 and begin < filled[place].end
        sources.append(filled[place].part(begin, max(following, begin + 1)) if is_inside else None)
    return sources


def _with_gaps_filled(spans: Sequence[Span]) -> list[Span]:
    """`spans`, and what stands between two of the same block or tool."""
    filled = list(spans[:1])
    for before, after in pairwise(spans):
        block = block_of(before.source.path)
        if block == block_of(after.source.path) and before.end < after.begin:
            filled.append(Span(before.end, after.begin, Source(block, 0, 0)))
        filled.append(after)
    return filled


def _prefix_spans(reading: Reading) -> list[Span]:
    spans: list[Span] = []
    end = 0
    for number, part in enumerate(reading.begun):
        begin = end + len(gap_before(reading.begun, number))
        end = begin + len(part.text)
        spans.append(Span(begin, end, Source(part.path, 0, len(part.text))))
    return spans
