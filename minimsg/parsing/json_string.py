r"""A JSON string as models write it in, as RFC 8259 has it out, one character at a time.

Put right on the way: line breaks, tabs and other control characters as they are; a
backslash before what needs none, or before nothing JSON knows (it is then meant as one);
single quotes around it; half of a surrogate pair, which no reader of JSON takes. Knows
one string; the value around it is in `json_text.py`.
"""

from __future__ import annotations

import json
import string
from typing import Final

ESCAPABLE: Final = '"\\/bfnrt'
BACKSLASH: Final = r"\\"  # a literal one
LONE_SURROGATE: Final = r"\ufffd"


class StringReader:
    """What follows the opening `quote`, up to the closing one."""

    def __init__(self, quote: str) -> None:
        self.is_complete = False
        self._quote = quote
        self._escape: str | None = None  # of an escape that has begun: what follows its backslash
        self._high = ""  # the first half of a surrogate pair, as an escape

    def push(self, character: str) -> str:
        """The text that is certain now that `character` has come, in double quotes at the end."""
        if self._escape is not None:
            return self._in_escape(self._escape, character)
        if character == "\\":
            self._escape = ""
            return ""
        if character == self._quote:
            self.is_complete = True
            return self._after_high('"')
        return self._after_high(_plain(character))

    def _in_escape(self, begun: str, character: str) -> str:
        whole = begun + character
        if whole == "u" or (begun and character in string.hexdigits and len(whole) < 5):
            self._escape = whole
            return ""
        self._escape = None
        if begun and character in string.hexdigits:
            return self._unit(whole)
        if begun or character not in ESCAPABLE + "'":
            return self._after_high(BACKSLASH + begun) + self.push(character)
        return self._after_high("'" if character == "'" else "\\" + character)

    def _unit(self, escape: str) -> str:
        """A UTF-16 unit, u and four digits."""
        unit = int(escape[1:], 16)
        if 0xDC00 <= unit < 0xE000 and self._high:
            high, self._high = self._high, ""
            return f"{high}\\{escape}"
        if 0xD800 <= unit < 0xDC00:
            lone = self._after_high("")
            self._high = f"\\{escape}"
            return lone
        return self._after_high(LONE_SURROGATE if 0xDC00 <= unit < 0xE000 else f"\\{escape}")

    def _after_high(self, text: str) -> str:
        """`text`, which no first half can go together with."""
        if not self._high:
            return text
        self._high = ""
        return LONE_SURROGATE + text


def _plain(character: str) -> str:
    return json.dumps(character)[1:-1] if character < " " or character == '"' else character
