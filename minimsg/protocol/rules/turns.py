"""Rules about messages: who begins, what may be empty, what text must hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest

if TYPE_CHECKING:
    from minimsg.protocol.content import ContentBlock
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest


def model_name_is_printable(request: PromptRequest, dialect: Dialect) -> None:
    if not request.model.isprintable():
        raise InvalidRequest("model", "String should contain printable characters only")


def there_is_a_first_user_message(request: PromptRequest, dialect: Dialect) -> None:
    if not request.messages:
        raise InvalidRequest("messages", "at least one message is required")
    if request.messages[0].role == "assistant":
        raise InvalidRequest("messages", 'first message must use the "user" role')


def messages_have_content(request: PromptRequest, dialect: Dialect) -> None:
    last = len(request.messages) - 1
    for index, message in enumerate(request.messages):
        may_be_empty = index == last and message.role == "assistant"
        if not message.content and not may_be_empty:
            raise InvalidRequest(
                f"messages.{index}",
                "all messages must have non-empty content "
                "except for the optional final assistant message",
            )


def text_is_visible(request: PromptRequest, dialect: Dialect) -> None:
    _text_is_visible("system", request.system)
    for message in request.messages:
        _text_is_visible("messages", message.content)


def _text_is_visible(path: str, blocks: Sequence[ContentBlock]) -> None:
    for block in blocks:
        if block.type != "text":
            continue
        if not block.text:
            raise InvalidRequest(path, "text content blocks must be non-empty")
        if not block.text.strip():
            raise InvalidRequest(path, "text content blocks must contain non-whitespace text")
