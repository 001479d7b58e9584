"""Rules that a well-typed request can still break: between fields, between blocks.

Every rule is asked in the order of the tables below; the first broken one decides the
answer. A rule is a function of the request and its `Dialect` that raises
`InvalidRequest`; a new one is a function in the file of its subject and a row here.
Types and bounds are in `request.py` and what it imports, gated fields in `gates.py`.
Source: Messages API reference and public error reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from minimsg.protocol.rules import reply, turns

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import MessagesRequest, PromptRequest

PROMPT_RULES: Final[tuple[Callable[[PromptRequest, Dialect], None], ...]] = (
    turns.model_name_is_printable,
    turns.there_is_a_first_user_message,
    turns.messages_have_content,
    turns.text_is_visible,
)
REPLY_RULES: Final[tuple[Callable[[MessagesRequest, Dialect], None], ...]] = (
    reply.max_tokens_is_possible,
    reply.stop_sequences_are_visible,
)


def check_prompt(request: PromptRequest, dialect: Dialect) -> None:
    """What holds for everything that is rendered. Raises InvalidRequest."""
    for rule in PROMPT_RULES:
        rule(request, dialect)


def check_reply(request: MessagesRequest, dialect: Dialect) -> None:
    """What holds for the reply that is asked for. Raises InvalidRequest."""
    for rule in REPLY_RULES:
        rule(request, dialect)


def unheeded(request: PromptRequest, dialect: Dialect) -> list[str]:
    """The paths of what `request` asks for and what does not happen here."""
    return []
