"""Rules that a well-typed request can still break: between fields, between blocks.

One function a rule, in the order in which they are checked; the first broken one
decides the answer. Knows the API's words for each. Types and bounds are in
`content.py` and `request.py`. Source: Messages API reference and public error reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS

if TYPE_CHECKING:
    from minimsg.protocol.content import TextBlock
    from minimsg.protocol.request import MessagesRequest, PromptRequest


def check_prompt(request: PromptRequest) -> None:
    """What holds for everything that is rendered. Raises InvalidRequest."""
    _model_name_is_printable(request)
    _there_is_a_first_user_message(request)
    _messages_have_content(request)
    _text_is_visible("system", request.system)
    for message in request.messages:
        _text_is_visible("messages", message.content)


def check_reply(request: MessagesRequest) -> None:
    """What holds for the reply that is asked for. Raises InvalidRequest."""
    _max_tokens_is_possible(request)
    for sequence in request.stop_sequences:
        if not sequence.strip():
            raise InvalidRequest("stop_sequences", "each stop sequence must contain non-whitespace")


def _model_name_is_printable(request: PromptRequest) -> None:
    if not request.model.isprintable():
        raise InvalidRequest("model", "String should contain printable characters only")


def _there_is_a_first_user_message(request: PromptRequest) -> None:
    if not request.messages:
        raise InvalidRequest("messages", "at least one message is required")
    if request.messages[0].role != "user":
        raise InvalidRequest("messages", 'first message must use the "user" role')


def _messages_have_content(request: PromptRequest) -> None:
    last = len(request.messages) - 1
    for index, message in enumerate(request.messages):
        may_be_empty = index == last and message.role == "assistant"
        if not message.content and not may_be_empty:
            raise InvalidRequest(
                f"messages.{index}",
                "all messages must have non-empty content "
                "except for the optional final assistant message",
            )


def _text_is_visible(path: str, blocks: list[TextBlock]) -> None:
    for block in blocks:
        if not block.text:
            raise InvalidRequest(path, "text content blocks must be non-empty")
        if not block.text.strip():
            raise InvalidRequest(path, "text content blocks must contain non-whitespace text")


def _max_tokens_is_possible(request: MessagesRequest) -> None:
    if request.max_tokens is None:
        return
    if request.max_tokens > LIMITS.max_tokens:
        raise InvalidRequest(
            "max_tokens",
            f"{request.max_tokens} > {LIMITS.max_tokens}, which is the maximum allowed "
            f"number of output tokens for {request.model}",
        )
    if request.max_tokens == 0 and request.stream:
        raise InvalidRequest("max_tokens", "0 only fills the cache and cannot be streamed")
