"""Where the model thinks: between `<think>` and `</think>`, or from the start.

Templates that open the tag themselves leave only its end to the model. There may be
several parts in one reply, between tool calls for example. What happens at a tag is
`markup.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from minimsg.parsing.segments import Parser


@dataclass(frozen=True)
class ThinkingTags:
    """What encloses a part, and whether the prompt has opened the first one."""

    opening: str = "<think>"
    closing: str = "</think>"
    is_opened: bool = False


THINK: Final = ThinkingTags()
REASONING: Final[Mapping[str, ThinkingTags | None]] = {
    "none": None,
    "think": THINK,
    "qwen3": THINK,  # also by the names that other servers have for it
    "deepseek_r1": ThinkingTags(is_opened=True),  # whatever the prompt ends with
    "thinking": ThinkingTags("<thinking>", "</thinking>"),
}
"""The tags by the names that a user can give them; None: the model does not think."""


class ThinkingMeter:
    """Counts the ids that a reply's thinking took: those between the tags, not of them."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._was_thinking = parser.is_thinking
        self._num_held = 0  # ids that are thinking, unless they become the closing tag
        self._num_tokens = 0

    def push(self) -> None:
        """The parser has read the text of one more id."""
        is_inside = self._was_thinking and self._parser.is_thinking
        self._was_thinking = self._parser.is_thinking
        self._num_held = self._num_held + 1 if is_inside else 0
        if not self._parser.is_holding:
            self._num_tokens += self._num_held
            self._num_held = 0

    @property
    def num_tokens(self) -> int:
        """The count, if no more ids come."""
        return self._num_tokens + self._num_held
