"""What of a request can be cited: its passages, each with its citation and its place.

Only of blocks with `citations.enabled`; indices count all documents, or all search results,
of the request. A passage knows its place in the text that the model reads of its block, so
that it can be found among the tokens (`places.py`); one that the model does not read, since
it was edited away or lies before a summary, is none.

Knows requests and readings; which passages a block has is in `locations.py`, which of them
a sentence comes from in `attribution.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from minimsg.citing.locations import Citable, locations_of
from minimsg.prompt.documents import part_ends, result_text, text_of, text_starts
from minimsg.prompt.reading import Reading
from minimsg.prompt.values import Value, block_of, map_values
from minimsg.protocol.cited import ReplyCitation
from minimsg.protocol.content import DocumentBlock, SearchResultBlock, ToolResultBlock
from minimsg.protocol.request import InputMessage
from minimsg.protocol.turns import blocks_of


@dataclass(frozen=True, slots=True)
class Passage:
    """Text that can be cited: characters `begin` to `end` of the value at `path`."""

    citation: ReplyCitation
    path: str
    begin: int
    end: int

    @property
    def text(self) -> str:
        """What the citation quotes."""
        return self.citation["cited_text"]


def passages_of(messages: Sequence[InputMessage], reading: Reading, model: str) -> list[Passage]:
    """The passages of `messages` that `model` reads, in order."""
    finder = _Finder(messages, reading, model)
    return [passage for wanted in _wanted(messages) for passage in finder.passages(*wanted)]


def _wanted(messages: Sequence[InputMessage]) -> Iterator[tuple[str, Citable, int]]:
    """The blocks that may be cited, their paths, and their numbers among those of their kind."""
    counts: dict[str, int] = {}
    for path, block in blocks_of(messages, DocumentBlock, SearchResultBlock, inside=True):
        index = counts.get(block.type, 0)
        counts[block.type] = index + 1
        if block.citations and block.citations.enabled:
            yield path, block, index


class _Finder:
    """Knows what a model reads of the blocks of a conversation."""

    def __init__(self, messages: Sequence[InputMessage], reading: Reading, model: str) -> None:
        self._messages = messages
        self._model = model
        self._values: dict[str, str] = {}
        map_values(reading.given, self._collect)

    def passages(self, path: str, block: Citable, index: int) -> Iterator[Passage]:
        """Those of `block`, which has this `index`; none if it is not read."""
        if (start := self._start(path, block)) is None:
            return
        starts = text_starts(block, path, self._model)
        for part, begin, citation in locations_of(block, index):
            place = start + starts[part] + begin
            yield Passage(citation, block_of(path), place, place + len(citation["cited_text"]))

    def _collect(self, value: Value) -> str:
        self._values[value.path] = value.text
        return value.text

    def _start(self, path: str, block: Citable) -> int | None:
        """Where `block` begins in the value that it is, or that holds it."""
        shown = text_of(block, path, self._model) or ""
        holder = block_of(path)
        if path == holder:
            return self._place(holder, shown)
        _, message, _, place, *_, number = path.split(".")
        result = self._messages[int(message)].content[int(place)]
        assert isinstance(result, ToolResultBlock)
        begin = self._place(holder, result_text(result, holder, self._model))
        ends = part_ends(result, holder, self._model, str)
        return None if begin is None else begin + ends[int(number)] - len(shown)

    def _place(self, path: str, text: str) -> int | None:
        """Where the value at `path` has `text`: at its end, but for what a template wants."""
        place = self._values.get(path, "").rfind(text)
        return None if place < 0 else place
