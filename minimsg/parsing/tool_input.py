"""The input of a tool call: JSON text in as it comes, fragments of one JSON object out.

By default a fragment ends where a member of the object ends, so that a client never sees
half a parameter; for a tool with `eager_input_streaming` everything certain goes out at
once. Either way what is out is always the beginning of an object, and `close` makes it a
whole one: of half a parameter, which might mean something else than the whole, it shows
nothing more than what is out. Knows JSON, not what surrounds it (`json_calls.py`).
"""

from __future__ import annotations

from minimsg.parsing.json_text import JsonReader


class ToolInput:
    """One object, in fragments: their concatenation is the beginning of a JSON object."""

    def __init__(self, *, is_eager: bool) -> None:
        self.is_eager = is_eager
        self._reader = JsonReader()
        self._ready: list[str] = []
        self._num_members = 0  # in the fragments so far
        self._is_begun = False  # something has been taken

    @property
    def is_complete(self) -> bool:
        """Whether the object has ended."""
        return self._reader.is_complete

    @property
    def is_open(self) -> bool:
        """Whether its brace has come."""
        return self._reader.is_open

    @property
    def can_end_member(self) -> bool:
        """Whether the value of a member is whole, so far as what follows does not go on with it."""
        return self._reader.can_end_member

    def push(self, character: str) -> bool:
        """Whether `character` belongs to the object, whose first one is its brace."""
        is_read = self._reader.push(character)
        self._look()
        return is_read

    def take(self) -> list[str]:
        """The fragments that can go out; none is empty."""
        taken, self._ready = self._ready, []
        if self.is_eager:
            taken = _filled([*taken, self._reader.take()])
        self._is_begun = self._is_begun or bool(taken)
        return taken

    def close(self) -> list[str]:
        """The last fragments; with them it is a whole object."""
        self._reader.flush()
        self._look()
        fragments = self.take()
        if self.is_complete:
            return fragments
        if not self._is_begun:
            return ["{}"]
        return [*fragments, self._reader.closing() if self.is_eager else "}"]

    def cut(self) -> list[str]:
        """The last fragments of an object that something else ended: all that is certain."""
        return [*self.take(), *_filled([self._reader.take()])]

    def _look(self) -> None:
        """End the fragment where a member, or the object, has ended."""
        if self._reader.num_members > self._num_members or self.is_complete:
            self._num_members = self._reader.num_members
            self._ready += _filled([self._reader.take()])


def _filled(fragments: list[str]) -> list[str]:
    return [fragment for fragment in fragments if fragment]
