"""Where values of a request stand in its rendered prompt, found by a second run of the template.

The second run is on values with a marker at either end (`marks.py`). If it writes what it
wrote before, but for the markers, these show where each value stands.

A marker may change what a template writes, and then less is marked:

1. All values, at their very ends.
2. All values, inside of the white space at their ends, since templates trim; that white
   space is the template's then.
3. No keys of schemas, then no details of schemas, then no keys of calls, since templates
   compare them (`values.py`).
4. Half of the rest and half of that half, up to `MAX_RUNS` runs: a value that the
   template looks into stays without markers.

Knows readings and templates, no tokens; next: `sources.py`, `block_ends.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from minimsg.errors import TemplateError
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
class Span:
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


class Search:
    """Runs of one template on one request, until the markers change nothing."""

    def __init__(
        self,
        reading: Reading,
        template: ChatTemplate,
        traits: Traits,
        blocks: Collection[str] | None = None,
    ) -> None:
        """`blocks`: the paths of those whose values are looked for; None for all."""
        self._reading = reading
        self._template = template
        self._traits = traits
        self.values: list[Value] = []
        self._blocks = blocks
        self._runs_left = MAX_RUNS
        map_values(reading.given, self._collect, blocks)

    def spans(self) -> list[Span]:
        """Where the values stand in the text of the pieces, in its order."""
        numbers = range(len(self.values))
        spans = self._run(self._numbered(numbers), is_inside=False)
        return self.inner_spans(numbers) if spans is None else spans

    def inner_spans(self, numbers: Sequence[int]) -> list[Span]:
        """Where these values stand, less the white space at their ends."""
        numbers = self._numbered(numbers)
        for most in reversed(Kind):
            numbers = [number for number in numbers if self.values[number].kind <= most]
            if (spans := self._run(numbers)) is not None:
                return spans
        return self._run(self._harmless(numbers)) or []

    def _numbered(self, numbers: Sequence[int]) -> Sequence[int]:
        """Those that there are markers for."""
        most = self._template.marks.num_sources // 2
        return [number for number in numbers if number < most]

    def _collect(self, value: Value) -> str:
        self.values.append(value)
        return value.text

    def _harmless(self, numbers: Sequence[int]) -> Sequence[int]:
        """Those of `numbers` that can be marked without any effect, half by half."""
        if self._run(numbers) is not None:
            return numbers
        if len(numbers) < 2:
            return []
        middle = len(numbers) // 2
        return [*self._harmless(numbers[:middle]), *self._harmless(numbers[middle:])]

    def _run(self, numbers: Collection[int], *, is_inside: bool = True) -> list[Span] | None:
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
            labelled = map_values(self._reading.given, label, self._blocks)
            text = labelled.write(self._template, self._traits)
            pieces, places = marks.split_sources(text)
        except TemplateError:
            return None
        return self._found(places, is_inside) if pieces == self._reading.written else None

    def _found(self, places: Sequence[tuple[int, int]], is_inside: bool) -> list[Span]:
        """The spans between the two markers of each value, which have these places."""
        begun: dict[int, int] = {}
        spans: list[Span] = []
        for marker, place in places:
            number, is_end = divmod(marker, 2)
            if not is_end:
                begun[number] = place
            elif number in begun:
                source = _source(self.values[number], is_inside)
                spans.append(Span(begun.pop(number), place, source))
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
