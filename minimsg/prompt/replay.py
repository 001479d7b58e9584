"""Thoughts that a client has dropped, put back where the model had them.

A client that keeps only what it shows sends an assistant's turn without its thinking. The
prompt then is not what the model wrote, and differs from what the cache holds of it. So
the server remembers thoughts by the conversation that they belong to: a digest of all
turns up to the one that has them, in a form that is the same whether a client sends
strings or blocks, with cache marks or without, with thinking or without it. Another
answer to the same question is another conversation.

A turn that brings thinking of its own, or a signature, is left as it is. Knows turns;
what is remembered comes from the caller. Next: `server/remembered.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import JsonValue

from minimsg.protocol.content import (
    ContentBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from minimsg.protocol.turns import Placed, Turn

IDS_AND_MARKS = frozenset({"cache_control", "id", "tool_use_id"})  # told anew by some clients


@dataclass(frozen=True, slots=True)
class Thought:
    """A stretch of thinking and how many of the turn's other blocks come before it."""

    place: int
    text: str


Remembered = Mapping[str, Sequence[Thought]]  # by the digest of the conversation that ends so


@dataclass(frozen=True, slots=True)
class Replay:
    """Turns with thoughts put back; the digests of what was used, and of all there is."""

    turns: list[Turn]
    recalled: list[str]
    digest: str


def put_back(system: Sequence[Turn], turns: Sequence[Turn], remembered: Remembered) -> Replay:
    """`turns` with what is remembered of them, and the digest that an answer goes on from.

    `system`: the system prompt as turns, which is part of the conversation.
    """
    filled: list[Turn] = []
    recalled: list[str] = []
    digest = ""
    for turn in system:
        digest = digest_of(digest, turn.role, _forms(turn))
    for turn in turns:
        digest = digest_of(digest, turn.role, _forms(turn))
        thoughts = remembered.get(digest, ()) if turn.role == "assistant" else ()
        if thoughts and not any(_brings_thinking(placed.block) for placed in turn.blocks):
            recalled.append(digest)
            turn = _with_thoughts(turn, thoughts)
        filled.append(turn)
    return Replay(filled, recalled, digest)


def _forms(turn: Turn) -> Iterable[JsonValue]:
    return (form_of(placed.block) for placed in turn.blocks)


def digest_of(before: str, role: str, forms: Iterable[JsonValue]) -> str:
    """The digest of a conversation that goes on with a turn of these blocks."""
    kept = [form for form in forms if form is not None]
    return sha256(json.dumps([before, role, kept], sort_keys=True).encode()).hexdigest()


def form_of(block: ContentBlock) -> JsonValue:
    """What a digest sees of a block; None for thinking, and for text of nothing but space."""
    match block:
        case TextBlock():
            return text_form(block.text)
        case ToolUseBlock():
            return call_form(block.name, block.input)
        case ThinkingBlock() | RedactedThinkingBlock():
            return None
        case _:
            return _without_marks(block.model_dump(mode="json", exclude_none=True))


def text_form(text: str) -> JsonValue:
    """`form_of` a text block."""
    return text.strip() or None


def call_form(name: str, input: Mapping[str, JsonValue]) -> JsonValue:
    """`form_of` a call."""
    return [name, dict(input)]


def _without_marks(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_without_marks(item) for item in value]
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key not in IDS_AND_MARKS}
        return {key: _without_marks(item) for key, item in kept.items()}
    return value


def _brings_thinking(block: ContentBlock) -> bool:
    if isinstance(block, ThinkingBlock):
        return bool(block.thinking or block.signature)
    return isinstance(block, RedactedThinkingBlock)


def _with_thoughts(turn: Turn, thoughts: Sequence[Thought]) -> Turn:
    """Each has the path of the block that it stands before, or of the last one."""
    said = [p for p in turn.blocks if form_of(p.block) is not None]
    blocks: list[Placed] = []
    for place, placed in enumerate(said):
        blocks += [_placed(t, placed.path) for t in thoughts if t.place == place]
        blocks.append(placed)
    blocks += [_placed(t, said[-1].path) for t in thoughts if t.place >= len(said)]
    return Turn(turn.role, turn.index, blocks)


def _placed(thought: Thought, path: str) -> Placed:
    return Placed(path, ThinkingBlock(type="thinking", thinking=thought.text, signature=""))
