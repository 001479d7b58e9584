"""The turns of a conversation, and its blocks by their path.

Messages of one role in a row are one turn. Each block keeps the JSON path at which the
client wrote it, so that rules and rendering can name it after merging. Empty messages
are left out. Knows messages and blocks, not what they mean. Used by `rules/` and
`prompt/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar, overload

from minimsg.protocol.content import (
    ContentSource,
    DocumentBlock,
    SearchResultBlock,
    ToolResultBlock,
)
from minimsg.protocol.wire import Wire

if TYPE_CHECKING:
    from minimsg.protocol.content import ContentBlock
    from minimsg.protocol.request import InputMessage

Role = Literal["user", "assistant", "system"]
A = TypeVar("A", bound=Wire)
B = TypeVar("B", bound=Wire)
C = TypeVar("C", bound=Wire)

HOLDERS: Final = frozenset({ToolResultBlock, SearchResultBlock, DocumentBlock})


class Placed(NamedTuple):
    """A block and the path where the client wrote it, such as `messages.2.content.0`."""

    path: str
    block: ContentBlock


@dataclass(frozen=True, slots=True)
class Turn:
    """All that one side says before the other does; `index` is that of its last message."""

    role: Role
    index: int
    blocks: list[Placed]


def turns_of(messages: Sequence[InputMessage], *, skip: Role | None = None) -> list[Turn]:
    """`messages` with neighbours of the same role merged, empty ones left out.

    With `skip`, messages of that role are left out too, and those around them merged.
    """
    filled = [
        (index, message)
        for index, message in enumerate(messages)
        if message.content and message.role != skip
    ]
    return [_turn(role, list(run)) for role, run in groupby(filled, key=lambda pair: pair[1].role)]


def _turn(role: Role, run: list[tuple[int, InputMessage]]) -> Turn:
    blocks = [
        Placed(f"messages.{index}.content.{place}", block)
        for index, message in run
        for place, block in enumerate(message.content)
    ]
    return Turn(role, run[-1][0], blocks)


@overload
def blocks_of(
    messages: Sequence[InputMessage],
    kind: type[A],
    /,
    *,
    role: Role | None = None,
    inside: bool = False,
) -> Iterator[tuple[str, A]]: ...
@overload
def blocks_of(
    messages: Sequence[InputMessage],
    kind: type[A],
    other: type[B],
    /,
    *,
    role: Role | None = None,
    inside: bool = False,
) -> Iterator[tuple[str, A | B]]: ...
@overload
def blocks_of(
    messages: Sequence[InputMessage],
    kind: type[A],
    other: type[B],
    third: type[C],
    /,
    *,
    role: Role | None = None,
    inside: bool = False,
) -> Iterator[tuple[str, A | B | C]]: ...
def blocks_of(
    messages: Sequence[InputMessage],
    *kinds: type[Wire],
    role: Role | None = None,
    inside: bool = False,
) -> Iterator[tuple[str, Wire]]:
    """The blocks of some kinds (and one `role`) with their paths, in order.

    With `inside`, those within results of tools, documents and search results too.
    """
    wanted = set(kinds)
    for index, message in enumerate(messages):
        if role is not None and message.role != role:
            continue
        for place, block in enumerate(message.content):
            if type(block) in wanted:
                yield f"messages.{index}.content.{place}", block
            for step, part in parts_of(block) if inside else ():
                if type(part) in wanted:
                    yield f"messages.{index}.content.{place}{step}", part


def parts_of(block: Wire) -> Iterable[tuple[str, Wire]]:
    """The blocks inside `block`, at any depth, with the steps of their paths from there on."""
    return _parts_of(block) if type(block) in HOLDERS else ()


def _parts_of(block: Wire) -> Iterator[tuple[str, Wire]]:
    content: Sequence[Wire] = ()
    steps = ""
    if isinstance(block, (ToolResultBlock, SearchResultBlock)):
        content, steps = block.content, f".{block.type}.content"
    elif isinstance(block, DocumentBlock) and isinstance(block.source, ContentSource):
        content, steps = block.source.content, ".document.source.content.content"
    for place, part in enumerate(content):
        yield f"{steps}.{place}", part
        yield from ((f"{steps}.{place}{more}", inner) for more, inner in parts_of(part))
