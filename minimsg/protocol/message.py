"""The answer as data: `Message`, its `usage`, its id, and why it ended.

Knows every field of a reply and spells the nullable ones out as null, as the API does.
Knows nothing of how a message comes about (`build.py`) or travels (`sse.py`).
Source: Messages API reference, response object.
"""

from __future__ import annotations

import secrets
import string
from typing import Final, Literal, NotRequired

from pydantic import JsonValue
from typing_extensions import TypedDict

from minimsg.engine.types import FinishReason
from minimsg.protocol.context import ContextEdits
from minimsg.protocol.diagnosis import Diagnosis

Display = Literal["shown", "omitted", "none"]  # of thinking: its text, its block only, nothing

StopReason = Literal[
    "end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"
]

STOP_REASONS: Final[dict[FinishReason, StopReason]] = {
    FinishReason.END: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.CONTEXT: "model_context_window_exceeded",
}
# A stop string makes it "stop_sequence" whatever the engine says; a tool call that is
# complete makes "end_turn" "tool_use" (`build.py`).


class CacheCreation(TypedDict):
    """Prompt tokens written to the cache, by the time they are kept."""

    ephemeral_5m_input_tokens: int
    ephemeral_1h_input_tokens: int


class OutputDetails(TypedDict):
    """What the output tokens were for."""

    thinking_tokens: int


class Usage(TypedDict):
    """Token counts. The whole prompt is input + cache_creation + cache_read."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    cache_creation: CacheCreation
    output_tokens: int
    output_tokens_details: OutputDetails | None  # null: the model does not think
    server_tool_use: None
    service_tier: Literal["standard"]
    speed: None
    inference_geo: str


class TextContent(TypedDict):
    """Text that the model wrote."""

    type: Literal["text"]
    text: str


class ThinkingContent(TypedDict):
    """What the model thought before it went on, and the mark by which its writer knows it again."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class DirectCaller(TypedDict):
    """The model itself makes the call, not code that it wrote."""

    type: Literal["direct"]


class ToolUseContent(TypedDict):
    """A tool call; its input is whole unless `max_tokens` or the window cut the message."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, JsonValue]
    caller: DirectCaller


Content = TextContent | ThinkingContent | ToolUseContent


class Message(TypedDict):
    """What POST /v1/messages answers; `stop_reason` is null only while it is being written."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[Content]
    stop_reason: StopReason | None
    stop_sequence: str | None
    stop_details: None
    container: None
    diagnostics: Diagnosis | None
    context_management: NotRequired[ContextEdits]  # if the request asked for edits
    usage: Usage


def new_message(model: str, input_tokens: int) -> Message:
    """A message of which nothing is written yet, for a prompt of `input_tokens`."""
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "diagnostics": None,
        "usage": {
            "input_tokens": input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 1,  # provisional, as the hosted API's; message_delta has the count
            "output_tokens_details": None,
            "server_tool_use": None,
            "service_tier": "standard",
            "speed": None,
            "inference_geo": "not_available",
        },
    }


BASE62: Final = string.digits + string.ascii_letters


def new_id(prefix: str) -> str:
    """An id nobody can guess: `prefix`, the version mark 01, 22 characters (131 bits)."""
    return f"{prefix}01" + "".join(secrets.choice(BASE62) for _ in range(22))
