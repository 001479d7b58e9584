"""Cache marks of a request as lengths of its prompt in tokens.

A mark covers everything up to and including its block, in the API's order: tools, system,
messages. Where a template writes them in another order, it covers the furthest of them.
Its length is that of the tokens that end with the block or before it and stay as they are
whatever follows (`encode.py`). A block that the model does not read ends where the one
before it does.

From each mark the cache looks back at `LOOK_BACK` positions for entries of earlier
requests. Every block is a position; a run of `tool_use`, or of `tool_result`, is one,
although an entry may end at any block in it, or at any part of a result.

Knows requests and prompts. What becomes of the marks: `engine/entries.py`; which are
allowed: `protocol/rules/caching.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, groupby
from typing import Final

from minimsg.engine.types import CacheMark
from minimsg.prompt.block_ends import block_ends
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.encode import fixed_lengths
from minimsg.prompt.reading import Reading
from minimsg.prompt.render import Prompt
from minimsg.protocol.content import ToolResultBlock, ToolUseBlock
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.rules.caching import all_marks, ttl_of
from minimsg.protocol.rules.tools import is_deferred

LOOK_BACK: Final = 20  # positions before a mark; API
TTL_S: Final = {"5m": 300, "1h": 3600}


Position = list[str]  # paths of a block or tool, or of all blocks of a run, in order


def cache_marks(
    prompt: Prompt, request: PromptRequest, chat: ChatModel, min_tokens: int
) -> tuple[CacheMark, ...]:
    """The marks of `request` on `prompt`, by length; none is shorter than `min_tokens`."""
    marks = list(all_marks(request))
    if not marks:
        return ()
    assert prompt.reading is not None  # `render` has made it
    positions = list(_positions(request, prompt.reading))
    placed = {path: n for n, position in enumerate(positions) for path in position}
    windows = [_window(placed[_known(mark.path, placed)]) for mark in marks]
    wider = (range(_window(window.start).start, window.stop) for window in windows)
    seen = sorted(set(chain.from_iterable(wider)))  # what is not shown ends where another does
    lengths = _lengths(prompt, [positions[n] for n in seen], chat)
    found: dict[int, CacheMark] = {}
    for mark, window in zip(marks, windows, strict=True):
        length = lengths[_known(mark.path, placed)]
        behind = chain.from_iterable(positions[window.start : window.stop])
        earlier = _longest_first({lengths[path] for path in behind}, length)
        made = CacheMark(length, TTL_S[ttl_of(mark.control)], earlier)
        found[length] = _both(found[length], made) if length in found else made
    return tuple(found[length] for length in sorted(found) if length >= max(min_tokens, 1))


def _window(place: int) -> range:
    """The positions that a mark at `place` looks at."""
    return range(max(place - LOOK_BACK, 0), place + 1)


def _both(one: CacheMark, other: CacheMark) -> CacheMark:
    """Two marks at one place."""
    earlier = _longest_first({*one.earlier, *other.earlier}, one.num_tokens)
    return CacheMark(one.num_tokens, max(one.ttl_s, other.ttl_s), earlier)


def _longest_first(lengths: set[int], limit: int) -> tuple[int, ...]:
    return tuple(sorted((length for length in lengths if 0 < length < limit), reverse=True))


def _known(path: str, placed: Mapping[str, int]) -> str:
    """The block at `path`, or the one around it that has a position."""
    while path not in placed:
        path = path.rpartition(".")[0]
        assert path, "every block that a rule lets be marked has a position"
    return path


def _lengths(prompt: Prompt, positions: Sequence[Position], chat: ChatModel) -> dict[str, int]:
    """For each path of `positions` the tokens up to its end that nothing behind it changes."""
    assert prompt.reading is not None
    paths = [*chain.from_iterable(positions)]
    found = block_ends(prompt.reading, prompt.messages, chat, frozenset(paths))
    ends = list(accumulate((found.get(path, 0) for path in paths), max))
    lengths = fixed_lengths(prompt.stretches, ends, chat.tokenizer)
    return dict(zip(paths, lengths, strict=True))


def _positions(request: PromptRequest, reading: Reading) -> Iterator[Position]:
    """All positions in the order in which the API caches them."""
    loaded = [f"tools.{n}" for n, tool in enumerate(request.tools) if not is_deferred(tool)]
    shown = [function.path for function in reading.given.functions]
    for path in dict.fromkeys([*loaded, *shown]):
        if path.startswith("tools."):  # others stand where a block of the messages brings them
            yield [path]
    for index in range(len(request.system)):
        yield [f"system.{index}"]
    for _, run in groupby(_blocks(request), key=lambda block: block[0]):
        yield [path for _, paths in run for path in paths]


def _blocks(request: PromptRequest) -> Iterator[tuple[object, list[str]]]:
    """For each block of the messages what is alike in a run, and its paths, its parts' first."""
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            path = f"messages.{index}.content.{place}"
            if isinstance(block, ToolResultBlock):
                parts = [f"{path}.tool_result.content.{n}" for n in range(len(block.content))]
                yield ToolResultBlock, [*parts, path]
            else:
                yield ToolUseBlock if isinstance(block, ToolUseBlock) else path, [path]
