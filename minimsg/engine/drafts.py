"""What a sequence may say next, if it repeats itself or its prompt: prompt lookup.

The last few ids are looked for earlier in the same sequence, and what followed them there
is the draft: no second model, a few microseconds. Summaries, edits of code and tool calls
copy long runs. The idea is that of prompt lookup decoding (A. Saxena,
https://github.com/apoorvumang/prompt-lookup-decoding), with the index of an LZ77 coder in
place of its scan. Knows ids only; who may draft, and whether it pays, is in
`speculation.py`.
"""

from __future__ import annotations

from typing import Final

# Longest first: the longer what is repeated, the likelier is that it goes on alike. Beyond
# four ids that hardly rises; a single id ("the") is nearly always found and seldom goes on.
LENGTHS: Final = (4, 3, 2)


class Drafter:
    """Follows a list of ids, which only grows. Each id is indexed once, whoever asks how often."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids
        self._followers: dict[tuple[int, ...], int] = {}  # where what followed a run begins
        self._num_indexed = 0

    def propose(self, count: int) -> list[int]:
        """The `count` ids that followed the latest earlier run like the last ids, or none.

        Where they reach the end they go on with themselves: a loop is drafted whole.
        """
        self._index()
        for length in LENGTHS:
            place = self._followers.get(tuple(self._ids[-length:]))
            if place is not None:
                followers = self._ids[place : place + count]
                return [followers[index % len(followers)] for index in range(count)]
        return []

    def _index(self) -> None:
        """Note the runs before each id; that before the next one is only looked for."""
        ids, followers = self._ids, self._followers
        for place in range(self._num_indexed, len(ids)):
            for length in LENGTHS:
                if place >= length:
                    followers[tuple(ids[place - length : place])] = place
        self._num_indexed = len(ids)
