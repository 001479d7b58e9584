"""Replies written by nobody: ids drawn blindly from all that a hook allows."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from minimsg.constrain.hooks import as_bits
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from minimsg.parsing.calls import Tools
from minimsg.parsing.formats import parser_for
from minimsg.parsing.segments import (
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.parsing.thinking import ThinkingTags
from minimsg.text.detokenize import Detokenizer

ENDINGS = ('"', "\n</parameter>", "</think>")  # of what blind chance would not end in time


def allowed_ids(hook: TokenHook) -> list[int] | None:
    """All ids that may come next; None: any."""
    if (forced := hook.forced()) is not None:
        return [forced]
    if (mask := hook.mask()) is None:
        return None
    return as_bits(mask).ids()


def may_come(hook: TokenHook, id: int) -> bool:
    allowed = allowed_ids(hook)
    return allowed is None or id in allowed


def drawn(
    hook: TokenHook,
    vocabulary: Vocabulary,
    seed: int,
    max_tokens: int = 2000,
    *,
    ends: bool = True,
) -> list[int]:
    """Ids drawn uniformly until the turn ends; now and then an ending is spelled if it may come.

    `ends`: whether the turn may end where it need not.
    """
    chance, ids, ending = random.Random(seed), list[int](), list[int]()
    while len(ids) < max_tokens and not (ids and ids[-1] in vocabulary.end_ids):
        allowed = allowed_ids(hook)
        assert allowed, "nothing, or anything, may come"
        if not ends:
            allowed = [id for id in allowed if id not in vocabulary.end_ids]
        if not ending and chance.random() < 0.1:
            ending = vocabulary.tag(chance.choice(ENDINGS))
        if ending and ending[0] in allowed:
            ids.append(ending.pop(0))
        else:
            ids.append(chance.choice(allowed))
            ending = []
        hook.advance(ids[-1])
    return ids


def write(hook: TokenHook, vocabulary: Vocabulary, text: str) -> str:
    """Advance by `text`, tags and ends of the turn included; returns what may not come of it."""
    ids = ids_of(vocabulary, text)
    for place, id in enumerate(ids):
        if not may_come(hook, id):
            return "".join(spell(vocabulary, ids[place:]))
        hook.advance(id)
    return ""


def ids_of(vocabulary: Vocabulary, text: str) -> list[int]:
    """The ids of `text`, control tokens as such."""
    ids, control = list[int](), vocabulary.tokenizer.control
    while text:
        token = next((token for token in control if text.startswith(token)), None)
        if token:
            ids, text = [*ids, control[token]], text[len(token) :]
            continue
        length = min((place for token in control if (place := text.find(token)) > 0),
            default=len(text))  # fmt: skip
        ids += vocabulary.tokenizer.encode(text[:length], at_start=False)
        text = text[length:]
    return ids


def spell(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """The text of ids, control tokens too."""
    return b"".join(map(vocabulary.tokenizer.token_bytes, ids)).decode()


@dataclass
class Said:
    """What a parser makes of a reply."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)  # name, JSON; whole ones only


def read(
    vocabulary: Vocabulary,
    format: str,
    tools: Tools,
    ids: Collection[int],
    thinking: ThinkingTags | None = None,
) -> Said:
    """What the parser of `format` makes of a reply that has ended."""
    detokenizer, parser = Detokenizer(vocabulary.tokenizer), parser_for(format, tools, thinking)
    pieces = [detokenizer.push(id) for id in ids if id not in vocabulary.end_ids]
    segments = [segment for piece in pieces for segment in parser.push(piece)]
    segments += [*parser.push(detokenizer.flush()), *parser.flush(is_cut=False)]
    said, name, fragments = Said(), "", list[str]()
    for segment in segments:
        match segment:
            case TextSegment(text):
                said.text += text
            case ThinkingSegment(text):
                said.thinking += text
            case ToolCallStart():
                name, fragments = segment.name, []
            case ToolCallInput():
                fragments.append(segment.fragment)
            case ToolCallEnd():
                said.calls.append((name, "".join(fragments)))
    return said
