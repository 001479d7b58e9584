"""What a chat template can do and how it ends a turn, found by rendering small conversations.

Templates do not say whether they take a system turn, or text as a string or as blocks,
or what they write after a reply. They are asked once, at load, so that a template that
cannot work stops the server there and not the first request. Knows `ChatTemplate` and
roles; the answers are used in `render.py` and `chat.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
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
    takes_text, takes_blocks = _content_forms(template, user)

    def turn(role: str, text: str) -> Message:
        return _turn(role, text if takes_text else [_block(text)])

    ask = turn("user", user)
    exchange = [ask, turn("assistant", reply), ask]
    _check_long(template, exchange)
    _compare_controls(template, exchange, controls)
    try:
        with_system = _rendered(template, [turn("system", system), ask])
    except TemplateError:
        with_system = ""
    return Traits(
        takes_system=system in with_system and user in with_system,
        takes_text=takes_text,
        takes_blocks=takes_blocks,
        turn_end=_turn_end(template, exchange, reply),
    )


def _content_forms(template: ChatTemplate, word: str) -> tuple[bool, bool]:
    """Whether content may be a string, and whether it may be a list of blocks."""
    as_text, as_blocks, why = "", "", "it leaves out what the user says"
    try:
        as_blocks = _rendered(template, [_turn("user", [_block(word)])])
    except TemplateError as error:
        why = f"{error}"
    try:
        as_text = _rendered(template, [_turn("user", word)])
    except TemplateError as error:
        why = f"{error}"
    if word not in as_text + as_blocks:
        raise TemplateError(why)
    takes_text = word in as_text
    return takes_text, word in as_blocks and (as_blocks == as_text or not takes_text)


def _turn(role: str, content: object) -> Message:
    return {"role": Role(role), "content": content}


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _rendered(template: ChatTemplate, messages: Sequence[Message]) -> str:
    return template.render(messages, add_generation_prompt=True, enable_thinking=False)


def _check_long(template: ChatTemplate, exchange: list[Message]) -> None:
    messages = [*exchange[:2] * (LONG_TURNS // 2), exchange[2]]
    _rendered(template, messages)


def _turn_end(template: ChatTemplate, exchange: list[Message], reply: str) -> str | None:
    """The control token that follows the reply, with at most white space between."""
    pieces = template.render_pieces(exchange, add_generation_prompt=True, enable_thinking=False)
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
    whole = marks.split(marks.mark(_rendered(template, exchange)))
    if unmarked := _controls(whole)[len(_controls(pieces)) :]:
        log.warning(
            "The chat template composes control tokens such as %r from parts; "
            "they will be encoded as plain text.",
            unmarked[-1],
        )


def _controls(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.is_control]
