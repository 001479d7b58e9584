"""Where the tokens of a prompt come from: for each, the value that says its first character.

The template runs a second time, on values with a marker at either end (`marks.py`). If it
writes what it wrote before, but for the markers, these show where each value stands, and
the tokenizer's offsets do the rest. What stands between two values of one block or tool,
such as the braces of its JSON, is that block's or tool's; all else is the template's.

A marker may change what a template writes, and then less is marked:

1. All values, at their very ends.
2. All values, inside of the white space at their ends, since templates trim; that white
   space is the template's then.
3. No keys of schemas, then no details of schemas, then no keys of calls, since templates
   compare them (`values.py`).
4. Half of the rest and half of that half, up to `MAX_RUNS` runs: a value that the
   template looks into stays without markers, and its tokens are the template's.

Knows readings and tokens; who pays for them is in `bill.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Final

from minimsg.errors import TemplateError
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.encode import token_starts
from minimsg.prompt.marks import Marks
from minimsg.prompt.probe import Traits
from minimsg.prompt.reading import Reading
from minimsg.prompt.template import ChatTemplate
from minimsg.prompt.values import Kind, Value, map_values

MAX_RUNS: Final = 32  # of the template, for one prompt


@dataclass(frozen=True, slots=True)
class Source:
    """Characters `start` to `end` of the value at `path`.

    All of it where the template writes the value in another form, such as escaped. None
    for a key of the object at `path`, and between the values of the block or tool there.
    """

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Span:
    """The characters of a rendered text that a source has written."""

    begin: int
    end: int
    source: Source

    def part(self, begin: int, end: int) -> Source:
        """The source of what is written from `begin`, which is in here, to `end`."""
        if self.source.end - self.source.start != self.end - self.begin:
            return self.source
        shift = self.source.start - self.begin
        return Source(self.source.path, begin + shift, min(end, self.end) + shift)


def map_sources(reading: Reading, chat: ChatModel) -> list[Source | None]:
    """For each id of the prompt what it comes from; None: from the template."""
    assert chat.template is not None  # it has written the reading
    assert chat.traits is not None
    text = "".join(piece.text for piece in reading.pieces)
    starts = token_starts(reading.pieces, chat.tokenizer)
    spans = _Search(reading, chat.template, chat.traits).spans()
    prefix_starts = chat.tokenizer.starts(reading.prefix, at_start=False)
    return [
        *_assigned(starts, len(text), spans),
        *_assigned(prefix_starts, len(reading.prefix), _prefix_spans(reading)),
    ]


def block_of(path: str) -> str:
    """The block or tool that the value at `path` belongs to."""
    steps = path.split(".")
    return ".".join(steps[:4] if steps[0] == "messages" else steps[:2])


def _assigned(starts: Sequence[int], end: int, spans: Sequence[_Span]) -> list[Source | None]:
    """For tokens that begin at `starts` of a text what they come from."""
    filled = _with_gaps_filled(spans)
    begins = [span.begin for span in filled]
    sources: list[Source | None] = []
    for begin, following in pairwise([*starts, end]):
        place = bisect_right(begins, begin) - 1
        is_inside = place >= 0 and begin < filled[place].end
        sources.append(filled[place].part(begin, max(following, begin + 1)) if is_inside else None)
    return sources


def _with_gaps_filled(spans: Sequence[_Span]) -> list[_Span]:
    """`spans`, and what stands between two of the same block or tool."""
    filled = list(spans[:1])
    for before, after in pairwise(spans):
        block = block_of(before.source.path)
        if block == block_of(after.source.path) and before.end < after.begin:
            filled.append(_Span(before.end, after.begin, Source(block, 0, 0)))
        filled.append(after)
    return filled


def _prefix_spans(reading: Reading) -> list[_Span]:
    spans: list[_Span] = []
    begin = 0
    for part in reading.begun:
        end = begin + len(part.text)
        spans.append(_Span(begin, end, Source(part.path, 0, len(part.text))))
        begin = end + 1  # a line break
    return spans


class _Search:
    """Runs of one template on one request, until the markers change nothing."""

    def __init__(self, reading: Reading, template: ChatTemplate, traits: Traits) -> None:
        self._reading = reading
        self._template = template
        self._traits = traits
        self._values: list[Value] = []
        self._runs_left = MAX_RUNS
        map_values(reading.given, self._collect)

    def spans(self) -> list[_Span]:
        """Where the values stand in the text of the pieces, in its order."""
        num_values = min(len(self._values), self._template.marks.num_sources // 2)
        numbers = list(range(num_values))
        if (spans := self._run(numbers, is_inside=False)) is not None:
            return spans
        for most in reversed(Kind):
            numbers = [number for number in numbers if self._values[number].kind <= most]
            if (spans := self._run(numbers)) is not None:
                return spans
        return self._run(self._harmless(numbers)) or []

    def _collect(self, value: Value) -> str:
        self._values.append(value)
        return value.text

    def _harmless(self, numbers: Sequence[int]) -> Sequence[int]:
        """Those of `numbers` that can be marked without any effect, half by half."""
        if self._run(numbers) is not None:
            return numbers
        if len(numbers) < 2:
            return []
        middle = len(numbers) // 2
        return [*self._harmless(numbers[:middle]), *self._harmless(numbers[middle:])]

    def _run(self, numbers: Collection[int], *, is_inside: bool = True) -> list[_Span] | None:
        """The spans of the values with these numbers; None if markers change the text."""
        if self._runs_left == 0:
            return None
        self._runs_left -= 1
        marks, order = self._template.marks, count()
        chosen = frozenset(numbers)

        def label(value: Value) -> str:
            number = next(order)
            if number not in chosen:
                return value.text
            return _labelled(value.text, number, marks, is_inside)

        try:
            text = map_values(self._reading.given, label).write(self._template, self._traits)
            pieces, places = marks.split_sources(text)
        except TemplateError:
            return None
        return self._found(places, is_inside) if pieces == self._reading.written else None

    def _found(self, places: Sequence[tuple[int, int]], is_inside: bool) -> list[_Span]:
        """The spans between the two markers of each value, which have these places."""
        begun: dict[int, int] = {}
        spans: list[_Span] = []
        for marker, place in places:
            number, is_end = divmod(marker, 2)
            if not is_end:
                begun[number] = place
            elif number in begun:
                source = _source(self._values[number], is_inside)
                spans.append(_Span(begun.pop(number), place, source))
        return sorted(spans, key=lambda span: span.begin)


def _source(value: Value, is_inside: bool) -> Source:
    is_key = value.kind in (Kind.CALL_KEY, Kind.SCHEMA_KEY)
    start, end = (0, 0) if is_key else _ends(value.text, is_inside)
    return Source(value.path, start, end)


def _labelled(text: str, number: int, marks: Marks, is_inside: bool) -> str:
    start, end = _ends(text, is_inside)
    if start == end:
        return text
    before, after = marks.source(2 * number), marks.source(2 * number + 1)
    return f"{text[:start]}{before}{text[start:end]}{after}{text[end:]}"


def _ends(text: str, is_inside: bool) -> tuple[int, int]:
    """Where the markers of `text` stand."""
    if not is_inside:
        return 0, len(text)
    end = len(text.rstrip())
    return (len(text) - len(text.lstrip()), end) if end else (0, 0)
