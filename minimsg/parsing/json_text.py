"""JSON as models write it in, JSON as RFC 8259 has it out, one character at a time.

Everything that comes out is the beginning of one JSON value, so that it can be streamed
at once and closed at any time: a comma, or a key and its colon, are held until the value
after them begins, numbers and words until they end. What models do and JSON does not
allow is put right where the meaning is plain: Python's True, False and None, a comma
before a closing bracket, and what `json_string.py` lists. The rest is refused, and so is
what readers of JSON refuse: numbers beyond a float, nesting that no request could send
back.

Knows one value; where in a tool call it stands is in `json_calls.py`.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.json_string import StringReader

MAX_DEPTH: Final = 180  # a request may nest 200 levels, of which the message around takes five
MAX_WORD_CHARS: Final = 400  # the largest float spelled out has 309 digits
WORD_CHARACTERS: Final = string.ascii_letters + string.digits + "+-."
NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
WORDS: Final = {
    "true": "true", "false": "false", "null": "null",
    "True": "true", "False": "false", "None": "null",
}  # fmt: skip


class Place(Enum):
    """What may come next."""

    VALUE = auto()  # a value
    ITEM = auto()  # a value, or the end of the array
    KEY = auto()  # a key, or the end of the object
    COLON = auto()
    AFTER = auto()  # a comma or the end of the container; outside of any, nothing
    STRING = auto()  # more of a string
    WORD = auto()  # more of a number, of true, false or null


class JsonReader:
    """One JSON value. `push` it character by character, `take` it in pieces."""

    def __init__(self) -> None:
        self._place = Place.VALUE
        self._closers: list[str] = []  # of the containers that are open, innermost last
        self._held: list[str] = []  # says nothing before a value follows
        self._out: list[str] = []
        self._word: list[str] = []
        self._string = StringReader("")
        self._is_key = False  # the string is one
        self.num_members = 0  # of the outermost container that have ended

    @property
    def is_complete(self) -> bool:
        """Whether the value has ended."""
        return self._place is Place.AFTER and not self._closers

    @property
    def is_open(self) -> bool:
        """Whether it is a container that has begun and not ended."""
        return bool(self._closers)

    @property
    def can_end_member(self) -> bool:
        """Whether a comma would end a member of the outermost container."""
        return len(self._closers) == 1 and self._place in (Place.AFTER, Place.WORD)

    def push(self, character: str) -> bool:
        """Whether `character` belongs to the value.

        If not, nothing has changed, but that a number has ended, as only what follows can
        tell.
        """
        return STEPS[self._place](self, character)

    def flush(self) -> None:
        """No more text comes: end a number or a word."""
        if self._place is Place.WORD:
            self._end_word()

    def take(self) -> str:
        """What has become certain since the last time."""
        taken, self._out = "".join(self._out), []
        return taken

    def closing(self) -> str:
        """What makes a whole value of all that was taken, unless that is nothing."""
        is_inside = self._place is Place.STRING and not self._is_key
        return '"' * is_inside + "".join(reversed(self._closers))

    def _at_value(self, character: str) -> bool:
        if character in WHITE_SPACE:
            self._held.append(character)
        elif character in "\"'":
            self._open_string(character, is_key=False)
        elif character in "{[" and len(self._closers) < MAX_DEPTH:
            self._release(character)
            self._closers.append("}" if character == "{" else "]")
            self._place = Place.KEY if character == "{" else Place.ITEM
        elif character in "-0123456789tfnTFN":
            self._word = [character]
            self._place = Place.WORD
        else:
            return False
        return True

    def _at_item(self, character: str) -> bool:
        return self._close() if character == "]" else self._at_value(character)

    def _at_key(self, character: str) -> bool:
        if character == "}":
            return self._close()
        if character in WHITE_SPACE:
            self._held.append(character)
        elif character in "\"'":
            self._open_string(character, is_key=True)
        else:
            return False
        return True

    def _at_colon(self, character: str) -> bool:
        if character != ":" and character not in WHITE_SPACE:
            return False
        self._held.append(character)
        if character == ":":
            self._place = Place.VALUE
        return True

    def _after_value(self, character: str) -> bool:
        if not self._closers:
            return False
        if character == self._closers[-1]:
            return self._close()
        if character != "," and character not in WHITE_SPACE:
            return False
        self._held.append(character)
        if character == ",":
            self._place = Place.KEY if self._closers[-1] == "}" else Place.ITEM
        return True

    def _in_string(self, character: str) -> bool:
        (self._held if self._is_key else self._out).append(self._string.push(character))
        if self._string.is_complete and self._is_key:
            self._place = Place.COLON
        elif self._string.is_complete:
            self._end_value()
        return True

    def _in_word(self, character: str) -> bool:
        if character in WORD_CHARACTERS and len(self._word) < MAX_WORD_CHARS:
            self._word.append(character)
            return True
        return self._end_word() and self._after_value(character)

    def _open_string(self, quote: str, *, is_key: bool) -> None:
        self._string, self._is_key = StringReader(quote), is_key
        if is_key:
            self._held.append('"')
        else:
            self._release('"')
        self._place = Place.STRING

    def _end_word(self) -> bool:
        word = "".join(self._word)
        if NUMBER.fullmatch(word) and math.isfinite(float(word)):
            self._release(word)
        elif word in WORDS:
            self._release(WORDS[word])
        else:
            return False
        self._end_value()
        return True

    def _close(self) -> bool:
        """End a container; a comma before its bracket is left out."""
        self._held = [held for held in self._held if held != ","]
        self._release(self._closers.pop())
        self._end_value()
        return True

    def _end_value(self) -> None:
        self._place = Place.AFTER
        self.num_members += len(self._closers) == 1

    def _release(self, text: str) -> None:
        """Say what was held until something follows, and `text`."""
        self._out += [*self._held, text]
        self._held = []


STEPS: Final[dict[Place, Callable[[JsonReader, str], bool]]] = {
    Place.VALUE: JsonReader._at_value,
    Place.ITEM: JsonReader._at_item,
    Place.KEY: JsonReader._at_key,
    Place.COLON: JsonReader._at_colon,
    Place.AFTER: JsonReader._after_value,
    Place.STRING: JsonReader._in_string,
    Place.WORD: JsonReader._in_word,
}


def read_json(text: str) -> str | None:
    """The one value that `text` is, as strict JSON; None if it is none."""
    reader = JsonReader()
    if not all(reader.push(character) for character in text.strip(WHITE_SPACE)):
        return None
    reader.flush()
    return reader.take() if reader.is_complete else None
