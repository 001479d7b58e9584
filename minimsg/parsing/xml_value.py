"""The value of one parameter in tags, from its opening tag on: text in, a member of JSON out.

It ends at `</parameter>`. Models forget that tag, so what cannot be part of the value ends
it as well: any tag, where the schema takes no text; in text, both ends of the call in a
row, or on a line of its own the tag of a parameter that the tool has and that was not
given. Where a grammar holds the call, that tag is there, and nothing else ends a value.
What stands around values: `qwen_xml.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Final

from minimsg.limits import LIMITS
from minimsg.parsing.hermes import CLOSING
from minimsg.parsing.hold import held_length
from minimsg.parsing.schema_kinds import STRING, Kinds, as_json

PARAMETER: Final = "<parameter="
END_OF_VALUE: Final = "</parameter>"
END_OF_FUNCTION: Final = "</function>"
BOTH_ENDS: Final = f"{END_OF_FUNCTION}\n{CLOSING}"
WITHOUT_TAGS: Final = frozenset({"integer", "number", "boolean", "null"})
LAST_END: Final = re.compile(rf"\n?(?:{END_OF_FUNCTION}|{CLOSING})\s{{0,8}}\Z")
HELD: Final = [
    before + tag for before in ("", "\n") for tag in (END_OF_VALUE, BOTH_ENDS, PARAMETER)
]


class Value:
    """One value as a member of an object; `head` is what stands before it.

    `others`: the parameters whose tag may end it; None: only its own end does.
    """

    def __init__(self, head: str, kinds: Kinds, others: Collection[str] | None) -> None:
        self.end = ""  # the tag that has ended it
        self._head = head  # "" once it is out, and the quote of a string with it
        self._kinds = kinds
        self._others = others
        self._is_first = True
        self._characters: list[str] = []  # that are not out

    def push(self, character: str) -> None:
        """Take a character in; the line break that ends the tag is none of the value."""
        if not (self._is_first and character == "\n"):
            self._characters.append(character)
        self._is_first = False
        if character == ">":
            self.end = self._find_end()

    def stream(self) -> str:
        """What is certain so far, if it is a string: not the rest of its quotes."""
        text = "".join(self._characters)
        certain = text[: len(text) - self._held_length(text)]
        if self._kinds != STRING or not certain:
            return ""
        self._characters = [text[len(certain) :]]
        return self._opening() + _escaped(certain)

    def finish(self) -> str:
        """What is not out of a value that has ended."""
        text = "".join(self._characters)
        text = text[: len(text) - len(self.end)].removesuffix("\n")
        if not self._head:
            return _escaped(text) + '"'
        return self._head + as_json(text, self._kinds)

    def closing(self) -> str:
        """What ends a value at the end of a reply: nothing if it is half and none of it is out."""
        last = LAST_END.search("".join(self._characters[-64:]))
        if last is not None and self._others is not None:
            self.end = last.group()
            return self.finish()
        return "" if self._head else '"'

    def _find_end(self) -> str:
        tail = "".join(self._characters[-(LIMITS.name_chars + len(PARAMETER) + 2) :])
        if tail.endswith(END_OF_VALUE):
            return END_OF_VALUE
        if self._others is None:
            return ""
        has_no_tags = self._kinds <= WITHOUT_TAGS
        for end in (END_OF_FUNCTION, CLOSING) if has_no_tags else (BOTH_ENDS,):
            if tail.endswith(end):
                return end
        before, tag, name = tail[:-1].rpartition(PARAMETER)
        is_line = before.endswith("\n") or not (before or self._is_begun)
        is_end = tag and name in self._others and (is_line or has_no_tags)
        return f"{tag}{name}>" if is_end else ""

    @property
    def _is_begun(self) -> bool:
        """Whether some of it is out."""
        return not self._head

    def _held_length(self, text: str) -> int:
        """The length of the end of `text` that may become the end of the value."""
        before, tag, name = text[-(LIMITS.name_chars + len(PARAMETER) + 1) :].rpartition(PARAMETER)
        if tag and any(other.startswith(name) for other in self._others or ()):
            return len(tag) + len(name) + before.endswith("\n")
        return held_length(text, HELD)

    def _opening(self) -> str:
        opening, self._head = self._head and f'{self._head}"', ""
        return opening


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
