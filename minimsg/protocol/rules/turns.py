"""Rules about messages: who begins, where a system turn may stand, what may be empty, the end.

Profile `compat` takes system turns anywhere; the words of `strict` are those by which
clients know that they must do without. Source: Messages API reference, messages; public
error reports; Claude Code 2.1.332, which reads these messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import TextBlock
from minimsg.protocol.options import EnabledThinking
from minimsg.protocol.server_blocks import CompactionBlock, McpToolUseBlock, ServerToolUseBlock

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import InputMessage, PromptRequest


def there_is_a_first_user_message(request: PromptRequest, dialect: Dialect) -> None:
    """The user begins. A summary of what was before may stand in front of all."""
    if not request.messages:
        raise InvalidRequest("messages", "at least one message is required")
    first = next((message for message in request.messages if message.role != "system"), None)
    is_summary = first and first.content and isinstance(first.content[0], CompactionBlock)
    if first is None or (first.role != "user" and not is_summary):
        raise InvalidRequest("messages", 'first message must use the "user" role')
    if dialect.is_strict and request.messages[0].role == "system":
        why = 'first message must use the "user" role'
        hint = "use the top-level 'system' parameter for the initial system prompt"
        raise InvalidRequest("messages", f"{why}; {hint}")


def system_turns_are_supported(request: PromptRequest, dialect: Dialect) -> None:
    if dialect.takes("system-turns"):
        return
    for index, message in enumerate(request.messages):
        if message.role == "system":
            raise InvalidRequest(
                f"messages.{index}", "role 'system' is not supported on this model"
            )


def system_turns_stand_between_user_and_assistant(request: PromptRequest, dialect: Dialect) -> None:
    """As hosted; one without content, which only sets the effort, may stand anywhere."""
    if not dialect.is_strict:
        return
    for index, message in enumerate(request.messages):
        if message.role != "system" or not message.content:
            continue
        before = request.messages[index - 1]
        if before.role != "user" and not is_paused(before):
            why = "role 'system' must follow a user message"
            raise InvalidRequest(f"messages.{index}", why)
        if [after.role for after in request.messages[index + 1 : index + 2]] not in (
            [],
            ["assistant"],
        ):
            why = "role 'system' must precede an assistant message or be the last message"
            raise InvalidRequest(f"messages.{index}", why)


def only_system_turns_have_settings(request: PromptRequest, dialect: Dialect) -> None:
    for index, message in enumerate(request.messages):
        if message.role == "system" or not dialect.is_strict:
            continue
        for name in ("output_config", "clear_at"):
            if name in message.model_fields_set:
                raise InvalidRequest(f"messages.{index}.{name}", "Extra inputs are not permitted")


def cleared_system_turns_are_plain_text(request: PromptRequest, dialect: Dialect) -> None:
    for index, message in enumerate(request.messages):
        if message.role != "system" or message.clear_at != "next_user_message":
            continue
        for place, block in enumerate(message.content):
            path = f"messages.{index}.content.{place}"
            if not isinstance(block, TextBlock):
                raise InvalidRequest(path, "text-only role 'system' messages require text blocks")
            if block.cache_control:
                raise InvalidRequest(
                    f"{path}.text.cache_control", "a message with clear_at cannot be cached"
                )


def messages_have_content(request: PromptRequest, dialect: Dialect) -> None:
    last = len(request.messages) - 1
    for index, message in enumerate(request.messages):
        if message.role != "system" and "content" not in message.model_fields_set:
            raise InvalidRequest(f"messages.{index}.content", "Field required")
        is_final = index == last and message.role == "assistant"
        is_setting = message.role == "system" and message.output_config is not None
        if not message.content and not is_final and not is_setting:
            raise InvalidRequest(
                f"messages.{index}",
                "all messages must have non-empty content "
                "except for the optional final assistant message",
            )


def assistant_prefix_is_supported(request: PromptRequest, dialect: Dialect) -> None:
    if is_assistant_prefix(request.messages[-1]) and not dialect.can("prefill"):
        raise InvalidRequest("", "Prefilling assistant messages is not supported for this model.")


def assistant_prefix_ends_in_no_space(request: PromptRequest, dialect: Dialect) -> None:
    """A tokenizer joins a space with the word that follows: the reply would begin oddly.

    Profile `compat` lets it.
    """
    last = request.messages[-1]
    if not dialect.is_strict or last.role != "assistant" or not last.content:
        return
    text = last.content[-1]
    if isinstance(text, TextBlock) and text.text[-1:].isspace():
        why = "final assistant content cannot end with trailing whitespace"
        raise InvalidRequest("messages", why)


def assistant_prefix_leaves_room(request: PromptRequest, dialect: Dialect) -> None:
    """What the reply must begin with cannot come after a beginning that the client gives."""
    if not is_assistant_prefix(request.messages[-1]):
        return
    thinks = isinstance(request.thinking, EnabledThinking)
    if thinks and (dialect.can("thinking") or dialect.is_strict):
        why = "a final assistant message cannot be combined with thinking"
        raise InvalidRequest("messages", why)
    if request.output_format or (request.output_config and request.output_config.format):
        raise InvalidRequest(
            "messages", "a final assistant message cannot be combined with output_config.format"
        )


def is_paused(message: InputMessage) -> bool:
    """Whether `message` is an assistant's that waits for a tool that the server runs."""
    pending = (ServerToolUseBlock, McpToolUseBlock)
    return (
        message.role == "assistant"
        and bool(message.content)
        and isinstance(message.content[-1], pending)
    )


def is_assistant_prefix(message: InputMessage) -> bool:
    """Whether `message`, the last one, is the beginning of the reply."""
    return message.role == "assistant" and bool(message.content) and not is_paused(message)
