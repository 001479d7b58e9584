"""What a reply to one prompt may cite, found before it begins: passages, their index, their places.

Made where bodies are prepared (`server/prepare.py`), used where replies are (`citer.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from minimsg.citing.attribution import Index, index_of
from minimsg.citing.passages import passages_of
from minimsg.citing.places import spans_of_ids
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import Prompt
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.message import Attribution


@dataclass(frozen=True, slots=True)
class Citing:
    """What a reply may cite, and where the model reads it."""

    index: Index
    attribution: Attribution | None  # how it is told, for clients; None: strict knows no such field
    spans: tuple[tuple[int, int], ...]  # of ids of the prompt, for each passage, if attention tells


def citing_of(prompt: Prompt, chat: ChatModel, dialect: Dialect, kind: str) -> Citing | None:
    """What a reply to `prompt` may cite, told by `kind` (`config.py`); None: nothing."""
    assert prompt.reading is not None  # `render` has made it
    if not dialect.can("citations"):
        return None
    passages = passages_of(prompt.messages, prompt.reading, chat.name)
    if not passages:
        return None
    is_by_attention = kind == "attention"
    spans = spans_of_ids(passages, prompt.reading, chat) if is_by_attention else ()
    told: Attribution = "attention" if is_by_attention else "overlap"
    return Citing(index_of(passages), None if dialect.is_strict else told, spans)
