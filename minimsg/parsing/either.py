"""A call that is written in one of two ways; its first character says in which.

Models slip into the way that other models write, with the tags of their own. Knows
neither way: `qwen_xml.py` and `llama_json.py` say which there are.
"""

from __future__ import annotations

from collections.abc import Callable

from minimsg.parsing.calls import CallReader, Outcome
from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.segments import Segment


class EitherCall:
    """What follows a tag; `choose` gives the reader of what begins with a character."""

    def __init__(self, choose: Callable[[str], CallReader]) -> None:
        self._choose = choose
        self._reader: CallReader | None = None  # None: only white space has come

    def push(self, character: str) -> Outcome:
        if self._reader is None:
            if character in WHITE_SPACE:
                return Outcome.MAYBE
            self._reader = self._choose(character)
        return self._reader.push(character)

    def take(self) -> list[Segment]:
        return self._reader.take() if self._reader else []

    def flush(self, *, is_cut: bool) -> list[Segment]:
        return self._reader.flush(is_cut=is_cut) if self._reader else []
