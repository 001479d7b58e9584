"""The turns of a conversation: messages of one role in a row are one turn.

Each block keeps the JSON path at which the client wrote it, so that rules and rendering
can name it after merging. Empty messages are left out. Knows messages and blocks, not
what they mean. Used by `rules/` and `prompt/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from minimsg.protocol.content import ContentBlock
    from minimsg.protocol.request import InputMessage

Role = Literal["user", "assistant", "system"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A block and the path where the client wrote it, such as `messages.2.content.0`."""

    path: str
    block: ContentBlock


@dataclass(frozen=True, slots=True)
class Turn:
    """All that one side says before the other does; `index` is that of its last message."""

    role: Role
    index: int
    blocks: list[Placed]


def turns_of(messages: Sequence[InputMessage]) -> list[Turn]:
    """`messages` with neighbours of the same role merged, empty ones left out."""
    filled = [(index, message) for index, message in enumerate(messages) if message.content]
    return [_turn(role, list(run)) for role, run in groupby(filled, key=lambda pair: pair[1].role)]


def _turn(role: Role, run: list[tuple[int, InputMessage]]) -> Turn:
    blocks = [
        Placed(f"messages.{index}.content.{place}", block)
        for index, message in run
        for place, block in enumerate(message.content)
    ]
    return Turn(role, run[-1][0], blocks)
