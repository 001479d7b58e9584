"""What must wait for more text: the beginning of a tag, and white space beside one.

`Tags` finds the first tag in text, and where that begins which may still become one. `Run` is a
stretch of text between tags: white space that touches a tag belongs to the tag and is
dropped, so a run that would be white space alone never becomes a block. Both know
nothing of what a tag means (`markup.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

WHITE_SPACE: Final = " \t\r\n"


def held_length(text: str, tags: Collection[str]) -> int:
    """The length of the longest end of `text` that begins some tag but is none."""
    longest = max(map(len, tags), default=1) - 1
    for length in range(min(longest, len(text)), 0, -1):
        if any(tag.startswith(text[-length:]) for tag in tags):
            return length
    return 0


class Tags:
    """A set of tags, none of which begins another."""

    def __init__(self, tags: Collection[str]) -> None:
        assert not any(a != b and b.startswith(a) for a in tags for b in tags)
        self._tags = tags
        self._pattern = re.compile("|".join(map(re.escape, tags)) or r"(?!)")

    def find(self, text: str, start: int) -> tuple[int, str | None]:
        """Where the first tag at or after `start` begins, and the tag.

        Without one (None): where that begins which may still become one.
        """
        match = self._pattern.search(text, start)
        if match is not None:
            return match.start(), match.group()
        return len(text) - held_length(text[start:], self._tags), None


class Run:
    """Text between two tags, or between one and the beginning or end of the reply.

    `touches_tag`: a tag comes before it, and so does the white space at its start.
    """

    def __init__(self, *, touches_tag: bool) -> None:
        self._drops_space = touches_tag
        self._spaces: list[str] = []  # at its end so far: a tag may claim them
        self.is_blank = True  # nothing but white space has come
        self.is_line_blank = True  # ... since the last line break

    def push(self, text: str) -> str:
        """What can be shown, now that `text` has come."""
        self._look(text)
        ink = text.rstrip(WHITE_SPACE)
        if not ink:
            self._spaces.append(text)
            return ""
        shown = "".join(self._spaces) + ink
        self._spaces = [text[len(ink) :]]
        if self._drops_space:
            self._drops_space = False
            shown = shown.lstrip(WHITE_SPACE)
        return shown

    def flush(self) -> str:
        """White space at the end, where no tag came to claim it."""
        return "" if self._drops_space else "".join(self._spaces)

    def _look(self, text: str) -> None:
        _, broken, line = text.rpartition("\n")
        self.is_blank = self.is_blank and not text.strip(WHITE_SPACE)
        self.is_line_blank = not line.strip(WHITE_SPACE) and (bool(broken) or self.is_line_blank)
