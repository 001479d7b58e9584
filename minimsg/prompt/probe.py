"""What a chat template can do and how it ends a turn, found by rendering small conversations.

Templates do not say whether they take a system turn, or text as a string or as blocks,
or what they write after a reply. They are asked once, at load, so that a template that
cannot work stops the server there and not the first request. Knows `ChatTemplate` and
roles; the answers are used in `render.py` and `chat.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from minimsg.errors import TemplateError
from minimsg.prompt.marks import Marks, Piece, Role
from minimsg.prompt.template import ChatTemplate, Message

log = logging.getLogger(__name__)

LONG_TURNS: Final = 500  # a long conversation, as agents have them
_WORDS: Final = ("Pelican", "Marmot", "Ibex")  # what no template writes on its own


@dataclass(frozen=True)
class Traits:
    """What a template takes, and what it writes right after a reply."""

    takes_system: bool  # else system text goes into the first user turn
    takes_text: bool  # content as a string
    takes_blocks: bool  # content as [{"type": "text", "text": ...}, ...]
    turn_end: str | None  # a control string


def probe(template: ChatTemplate, controls: Collection[str]) -> Traits:
    """The traits of `template`. Raises TemplateError if it cannot render a conversation."""
    system, user, reply = _WORDS
    as_text = _renders(template, [_turn("user", user)])
    as_blocks = _renders(template, [_turn("user", [_block(user)])])
    takes_text = as_text is not None and user in as_text
    takes_blocks = as_blocks is not None and user in as_blocks
    takes_blocks &= as_blocks == as_text or not takes_text
    if not takes_text and not takes_blocks:
        template.render([_turn("user", user)], add_generation_prompt=True)  # raises its own reason
        raise TemplateError("the template leaves out what the user says")

    def content(text: str) -> object:
        return text if takes_text else [_block(text)]

    exchange = [_turn("user", content(user)), _turn("assistant", content(reply))]
    _check_long(template, exchange)
    with_system = [_turn("system", content(system)), exchange[0]]
    shown = _renders(template, with_system)
    _compare_controls(template, exchange, controls)
    return Traits(
        takes_system=shown is not None and system in shown and user in shown,
        takes_text=takes_text,
        takes_blocks=takes_blocks,
        turn_end=_turn_end(template, exchange, reply),
    )


def _turn(role: str, content: object) -> Message:
    return {"role": Role(role), "content": content}


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _renders(template: ChatTemplate, messages: list[Message]) -> str | None:
    try:
        return template.render(messages, add_generation_prompt=True, enable_thinking=False)
    except TemplateError:
        return None


def _check_long(template: ChatTemplate, exchange: list[Message]) -> None:
    messages = [*exchange * (LONG_TURNS // 2), exchange[0]]
    template.render(messages, add_generation_prompt=True, enable_thinking=False)


def _turn_end(template: ChatTemplate, exchange: list[Message], reply: str) -> str | None:
    """The control token that follows the reply, with at most white space between."""
    pieces = template.render_pieces(exchange, add_generation_prompt=False, enable_thinking=False)
    for piece, following in pairwise(pieces):
        if piece.text.rstrip().endswith(reply):
            return following.text
    return None


def _compare_controls(
    template: ChatTemplate, exchange: list[Message], controls: Collection[str]
) -> None:
    """Say so if the template puts control tokens together in a way that is not followed."""
    marks = Marks(controls)
    pieces = template.render_pieces(exchange, add_generation_prompt=True, enable_thinking=False)
    text = template.render(exchange, add_generation_prompt=True, enable_thinking=False)
    whole = marks.split(marks.mark(text))
    if unmarked := _controls(whole)[len(_controls(pieces)) :]:
        log.warning(
            "The chat template composes control tokens such as %r from parts; "
            "they will be encoded as plain text.",
            unmarked[-1],
        )


def _controls(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.is_control]
