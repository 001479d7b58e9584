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
from minimsg.protocol.cited import ReplyCitation
from minimsg.protocol.context import ContextEdits
from minimsg.protocol.diagnosis import Diagnosis
from minimsg.protocol.usage import Usage, input_usage, new_usage

Display = Literal["shown", "omitted", "none"]  # of thinking: its text, its block only, nothing

Attribution = Literal["overlap", "attention"]  # how it is told what a text was taken from

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


class TextContent(TypedDict):
    """Text that the model wrote. `citations`, if any were asked for: null for none."""

    type: Literal["text"]
    text: str
    citations: NotRequired[list[ReplyCitation] | None]


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
    attribution: NotRequired[Attribution]  # an extension, where text may be cited: how it is told
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
        "usage": new_usage(input_usage(input_tokens)),
    }


BASE62: Final = string.digits + string.ascii_letters


def new_id(prefix: str) -> str:
    """An id nobody can guess: `prefix`, the version mark 01, 22 characters (131 bits)."""
    return f"{prefix}01" + "".join(secrets.choice(BASE62) for _ in range(22))
