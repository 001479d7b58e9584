"""Rules about `cache_control`: how many marks, in which order, and where none may be.

The prompt is cached in the order tools, system, messages, and so are the marks looked at.
Source: Messages API reference, prompt caching.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import RedactedThinkingBlock, TextBlock, ThinkingBlock
from minimsg.protocol.turns import blocks_of, parts_of
from minimsg.protocol.wire import CacheControl, CacheMark

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest

MAX_MARKS: Final = 4  # API


def thinking_is_not_marked(request: PromptRequest, dialect: Dialect) -> None:
    for path, block in blocks_of(request.messages, ThinkingBlock, RedactedThinkingBlock):
        if block.cache_control:
            why = "Extra inputs are not permitted"
            raise InvalidRequest(f"{path}.{block.type}.cache_control", why)


def marks_are_few(request: PromptRequest, dialect: Dialect) -> None:
    """The automatic mark counts, unless it falls on a block that has the same already."""
    number = len(list(_marks(request)))
    if request.cache_control and not _mark_of_last_block(request):
        number += 1
    if number > MAX_MARKS:
        why = f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {number}."
        raise InvalidRequest("", why)


def automatic_mark_fits(request: PromptRequest, dialect: Dialect) -> None:
    last = _mark_of_last_block(request)
    if request.cache_control and last and _ttl(last) != _ttl(request.cache_control):
        raise InvalidRequest(
            "cache_control.ttl",
            f"the last block already has cache_control with ttl='{_ttl(last)}', "
            f"which differs from ttl='{_ttl(request.cache_control)}'",
        )


def long_marks_come_first(request: PromptRequest, dialect: Dialect) -> None:
    marks = list(_marks(request))
    if request.cache_control:
        marks.append(("cache_control", request.cache_control))
    is_short_seen = False
    for path, mark in marks:
        if _ttl(mark) == "5m":
            is_short_seen = True
        elif is_short_seen:
            raise InvalidRequest(
                f"{path}.ttl",
                "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
                "block. Note that blocks are processed in the following order: tools, system, "
                "messages.",
            )


def _marks(request: PromptRequest) -> Iterator[tuple[str, CacheControl]]:
    """Every explicit mark and its path, in the order in which the prompt is cached."""
    for index, tool in enumerate(request.tools):
        if tool.cache_control:
            yield f"tools.{index}.cache_control", tool.cache_control
    for index, text in enumerate(request.system):
        if text.cache_control:
            yield f"system.{index}.cache_control", text.cache_control
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            path = f"messages.{index}.content.{place}"
            if block.cache_control:
                yield f"{path}.cache_control", block.cache_control
            for steps, part in parts_of(block):
                if isinstance(part, CacheMark) and part.cache_control:
                    yield f"{path}{steps}.cache_control", part.cache_control


def _mark_of_last_block(request: PromptRequest) -> CacheControl | None:
    """The explicit mark of the block on which the automatic one falls."""
    for message in reversed(request.messages):
        for block in reversed(message.content):
            is_empty = isinstance(block, TextBlock) and not block.text
            if not is_empty and not isinstance(block, (ThinkingBlock, RedactedThinkingBlock)):
                return block.cache_control
    return None


def _ttl(mark: CacheControl) -> str:
    return mark.ttl or "5m"
