"""Where passages stand in a prompt: the ids that say them, by the map of its sources.

A token that two passages share is of both. Knows readings and tokens; who looks at the
places is the engine (`GenerationRequest.passages`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from minimsg.citing.passages import Passage
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.reading import Reading
from minimsg.prompt.sources import map_sources


def spans_of_ids(
    passages: Sequence[Passage], reading: Reading, chat: ChatModel
) -> tuple[tuple[int, int], ...]:
    """For each passage the ids `[start, stop)` of the prompt that say it.

    Nothing, `(0, 0)`, where the template writes the block in another form, such as escaped.
    """
    values = _values(reading, chat)
    return tuple(
        values[passage.path].ids(passage.begin, passage.end) if passage.path in values else (0, 0)
        for passage in passages
    )


class _Value:
    """The tokens of one value: their ids' places, and the characters that each says."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, place: int, start: int, end: int) -> None:
        """The next token."""
        self.places.append(place)
        self.starts.append(start)
        self.ends.append(end)

    def ids(self, begin: int, end: int) -> tuple[int, int]:
        """The places of those that say characters `begin` to `end`."""
        if len(self.starts) > 1 and self.starts[0] == self.starts[-1]:
            return 0, 0  # every token is of the whole value: it is not written as it is
        first, last = bisect_right(self.ends, begin), bisect_left(self.starts, end) - 1
        if not first <= last < len(self.places):
            return 0, 0
        return self.places[first], self.places[last] + 1


def _values(reading: Reading, chat: ChatModel) -> dict[str, _Value]:
    values: dict[str, _Value] = {}
    for place, source in enumerate(map_sources(reading, chat)):
        if source is not None:
            values.setdefault(source.path, _Value()).add(place, source.start, source.end)
    return values
