"""Where the model thinks: between `<think>` and `</think>`, or from the start.

Templates that open the tag themselves leave only its end to the model. There may be
several parts in one reply, between tool calls for example. What happens at a tag is
`markup.py`'s affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ThinkingTags:
    """What encloses a part, and whether the prompt has opened the first one."""

    opening: str = "<think>"
    closing: str = "</think>"
    is_opened: bool = False


THINK: Final = ThinkingTags()
