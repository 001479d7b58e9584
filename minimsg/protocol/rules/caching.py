"""Rules about `cache_control`: how many marks, in which order, and where none may be.

The prompt is cached in the order tools, system, messages, and so are the marks looked at;
the parts of a block come before its end. What marks do: `prompt/caching.py`.
Source: Messages API reference, prompt caching.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import RedactedThinkingBlock, TextBlock, ThinkingBlock
from minimsg.protocol.turns import blocks_of, parts_of
from minimsg.protocol.wire import CacheControl, CacheMark

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest

MAX_MARKS: Final = 4  # API


class Mark(NamedTuple):
    """A mark and the path of the block whose end it is at."""

    path: str
    control: CacheControl
    field: str  # the path of the mark itself


class _Place(NamedTuple):
    """A block and the mark that it has."""

    path: str
    control: CacheControl | None


def thinking_is_not_marked(request: PromptRequest, dialect: Dialect) -> None:
    for path, block in blocks_of(request.messages, ThinkingBlock, RedactedThinkingBlock):
        if block.cache_control:
            why = "Extra inputs are not permitted"
            raise InvalidRequest(f"{path}.{block.type}.cache_control", why)


def marks_are_few(request: PromptRequest, dialect: Dialect) -> None:
    """The automatic mark counts, unless it falls on a block that has the same already."""
    number = len(list(all_marks(request)))
    if number > MAX_MARKS:
        why = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {number}."
        raise InvalidRequest("", why)


def automatic_mark_fits(request: PromptRequest, dialect: Dialect) -> None:
    if not request.cache_control:
        return
    place = _automatic_place(request)
    if not place or not place.control:
        return
    ttl, asked = ttl_of(place.control), ttl_of(request.cache_control)
    if ttl != asked:
        raise InvalidRequest(
            "cache_control.ttl",
            f"the last block already has cache_control with ttl='{ttl}', "
            f"which differs from ttl='{asked}'",
        )


def long_marks_come_first(request: PromptRequest, dialect: Dialect) -> None:
    is_short_seen = False
    for mark in all_marks(request):
        if ttl_of(mark.control) == "5m":
            is_short_seen = True
        elif is_short_seen:
            raise InvalidRequest(
                f"{mark.field}.ttl",
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
                "block. Note that blocks are processed in the following order: tools, system, "
                "messages.",
            )


def all_marks(request: PromptRequest) -> Iterator[Mark]:
    """The marks of `request` in the order in which the prompt is cached, the automatic one last.

    An automatic mark on a block that has one already is none.
    """
    for path, block in _places(request):
        if block.cache_control:
            yield Mark(path, block.cache_control, f"{path}.cache_control")
    if request.cache_control:
        place = _automatic_place(request)
        if place and not place.control:
            yield Mark(place.path, request.cache_control, "cache_control")


def ttl_of(mark: CacheControl) -> Literal["5m", "1h"]:
    """How long what is cached at `mark` lives."""
    return mark.ttl or "5m"


def _automatic_place(request: PromptRequest) -> _Place | None:
    """The block on which the automatic mark falls: the last that may have one."""
    for index, message in reversed(list(enumerate(request.messages))):
        for place, block in reversed(list(enumerate(message.content))):
            if _may_be_marked(block) and message.clear_at != "next_user_message":
                return _Place(f"messages.{index}.content.{place}", block.cache_control)
    return None


def _may_be_marked(block: CacheMark) -> bool:
    is_empty = isinstance(block, TextBlock) and not block.text
    return not is_empty and not isinstance(block, (ThinkingBlock, RedactedThinkingBlock))


def _places(request: PromptRequest) -> Iterator[tuple[str, CacheMark]]:
    """Everything that may carry a mark, in the order in which the prompt is cached."""
    for index, tool in enumerate(request.tools):
        yield f"tools.{index}", tool
    for index, text in enumerate(request.system):
        yield f"system.{index}", text
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            path = f"messages.{index}.content.{place}"
            for steps, part in parts_of(block):
                if isinstance(part, CacheMark):
                    yield f"{path}{steps}", part
            yield path, block
