"""A request with some of its blocks replaced, wherever they stand.

Blocks stand in turns, in results of tools and in documents; each is given with its path.
What is not replaced stays the same object. Knows where blocks can be, not what they mean.
Used by `uploads.py` and `pictures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from minimsg.protocol.content import ContentSource, DocumentBlock, ToolResultBlock
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.wire import Wire

R = TypeVar("R", bound=PromptRequest)
B = TypeVar("B", bound=Wire)

Change = Callable[[Wire, str], Wire]  # a block and its path -> what stands there from now on


def map_blocks(request: R, change: Change) -> R:
    """`request` with each block that holds no others changed."""
    messages = [
        _with(message, {"content": _mapped(message.content, f"messages.{n}.content", change)})
        for n, message in enumerate(request.messages)
    ]
    return _with(request, {"messages": messages})


def _mapped(blocks: Sequence[Wire], path: str, change: Change) -> list[Wire]:
    return [_map(block, f"{path}.{place}", change) for place, block in enumerate(blocks)]


def _map(block: Wire, path: str, change: Change) -> Wire:
    if isinstance(block, ToolResultBlock):
        inside = _mapped(block.content, f"{path}.tool_result.content", change)
        return _with(block, {"content": inside})
    if isinstance(block, DocumentBlock) and isinstance(block.source, ContentSource):
        steps = f"{path}.document.source.content.content"
        source = _with(block.source, {"content": _mapped(block.source.content, steps, change)})
        return _with(block, {"source": source})
    return change(block, path)


def _with(whole: B, parts: dict[str, Any]) -> B:
    """`whole`, or a copy of it where any part is another object than before."""
    (name, new), *_ = parts.items()
    old = getattr(whole, name)
    is_same = new is old
    if isinstance(new, list):
        is_same = all(one is other for one, other in zip(new, old, strict=True))
    return whole if is_same else whole.model_copy(update=parts)
