"""Text to sentences, while it comes: the same ones however it was cut into pieces.

A sentence ends

- behind `.`, `!`, `?` or their like, and what closes quotes and brackets, where white space
  and then no small letter follow; not behind an abbreviation, an initial or a list's number;
- behind the full stops of Chinese and Japanese, white space or not;
- at an empty line, and at a line break before a list's mark, a number, a heading or a table;
- after `MAX_CHARS`: whatever has no sentences, such as code, is not held back for ever.

White space after a sentence is part of it, so that all sentences together are the text.
"""

from __future__ import annotations

import re
from typing import Final

MAX_CHARS: Final = 1_000
ENDS: Final = ".!?…"
WIDE_ENDS: Final = frozenset("。！？｡")
CLOSERS: Final = "\"'”’»)]}*_`」』）】》"
LINE_STARTS: Final = "-*+•#>|0123456789"
SHORT: Final = (
    "mr mrs ms dr prof st no nr vs fig eq ca cf approx e.g i.e z.b d.h al inc jr sr vol pp"
)
ABBREVIATIONS: Final = frozenset(SHORT.split())
LAST_WORD: Final = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")


class SentenceSplitter:
    """Holds back the sentence that may still go on."""

    def __init__(self) -> None:
        self._held = ""
        self._num_seen = 0  # of the held characters that have been looked at

    def push(self, text: str) -> list[str]:
        """The sentences that are complete."""
        self._held += text
        complete: list[str] = []
        start = 0
        for place in range(self._num_seen, len(self._held)):
            if _begins(self._held, start, place):
                complete.append(self._held[start:place])
                start = place
        self._held = self._held[start:]
        self._num_seen = len(self._held)
        return complete

    def flush(self) -> str:
        """What was held back, now that no more text comes; "" if nothing was."""
        held, self._held, self._num_seen = self._held, "", 0
        return held


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where each sentence of a whole text begins and ends, less the white space around it."""
    splitter = SentenceSplitter()
    spans: list[tuple[int, int]] = []
    place = 0
    for sentence in [*splitter.push(text), splitter.flush()]:
        if kept := sentence.strip():
            begin = place + len(sentence) - len(sentence.lstrip())
            spans.append((begin, begin + len(kept)))
        place += len(sentence)
    return spans


def _begins(text: str, start: int, place: int) -> bool:
    """Whether a sentence begins at `place`, where the one before began at `start`."""
    character = text[place]
    if place == start or character.isspace():
        return False
    if place - start >= MAX_CHARS and not text[start:place].isspace():
        return True
    before = text[place - 1]
    if not before.isspace():
        is_closing = character in CLOSERS or character in WIDE_ENDS
        return not is_closing and _without_closers(text[start:place])[-1:] in WIDE_ENDS
    return _begins_after_space(text[start:place], character)


def _begins_after_space(before: str, character: str) -> bool:
    """The same where `before`, all since the last sentence, ends in white space."""
    said = before.rstrip()
    if not said:
        return False
    num_breaks = before.count("\n", len(said))
    if num_breaks > 1 or (num_breaks == 1 and character in LINE_STARTS):
        return True
    said = _without_closers(said)
    if said[-1:] in WIDE_ENDS:
        return True
    if not said.endswith(tuple(ENDS)) or character.islower():
        return False
    return not (said.endswith(".") and _is_short_form(said[:-1]))


def _without_closers(text: str) -> str:
    return text.rstrip(CLOSERS)


def _is_short_form(said: str) -> bool:
    """Whether the full stop behind `said` belongs to its last word or number."""
    if said.strip().isdigit():  # of a list
        return True
    found = LAST_WORD.search(said)
    if found is None:
        return False
    is_initial = len(found[0]) == 1 and found[0].isupper() and found[0] != "I"
    return is_initial or found[0].lower() in ABBREVIATIONS
