"""The events of a streamed reply, typed as the JSON that goes over the wire.

Knows the shape of each event. Which may follow which is in `grammar.py`, how they come
about in `build.py`, how they travel in `sse.py`. Source: Messages API streaming page.
"""

from __future__ import annotations

from typing import Final, Literal, NotRequired

from typing_extensions import TypedDict

from minimsg.protocol.cited import ReplyCitation
from minimsg.protocol.context import ContextEdits
from minimsg.protocol.envelope import ErrorEvent
from minimsg.protocol.message import Content, Message, StopReason
from minimsg.protocol.usage import FinalUsage


class MessageStart(TypedDict):
    """Always first: the message with no content and the final input counts."""

    type: Literal["message_start"]
    message: Message


class ContentBlockStart(TypedDict):
    """A block opens, still empty: no text, no signature, input `{}`."""

    type: Literal["content_block_start"]
    index: int
    content_block: Content


class TextDelta(TypedDict):
    """More text of the open block; never half a character."""

    type: Literal["text_delta"]
    text: str


class ThinkingDelta(TypedDict):
    """More of the open thinking block."""

    type: Literal["thinking_delta"]
    thinking: str


class SignatureDelta(TypedDict):
    """The whole signature of the open thinking block: once, and last."""

    type: Literal["signature_delta"]
    signature: str


class InputJsonDelta(TypedDict):
    """More JSON text of the input of the open tool_use block; the first one is empty."""

    type: Literal["input_json_delta"]
    partial_json: str


class CitationsDelta(TypedDict):
    """One more place that the text of the open block was taken from."""

    type: Literal["citations_delta"]
    citation: ReplyCitation


Delta = TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta | CitationsDelta


class ContentBlockDelta(TypedDict):
    """The open block grows."""

    type: Literal["content_block_delta"]
    index: int
    delta: Delta


class ContentBlockStop(TypedDict):
    """The open block is complete."""

    type: Literal["content_block_stop"]
    index: int


class Ping(TypedDict):
    """A sign of life."""

    type: Literal["ping"]


class Ending(TypedDict):
    """Why the message ended; all keys always, null included: typed clients need them."""

    stop_reason: StopReason
    stop_sequence: str | None
    stop_details: None  # without it the TypeScript SDK drops the message's own


class MessageDelta(TypedDict):
    """The message is complete: why, and what it cost."""

    type: Literal["message_delta"]
    delta: Ending
    context_management: NotRequired[ContextEdits]  # if the request asked for edits
    usage: FinalUsage


class MessageStop(TypedDict):
    """Always last, after a reply that succeeded."""

    type: Literal["message_stop"]


Event = (
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | Ping
    | MessageDelta
    | MessageStop
    | ErrorEvent
)

PING: Final[Ping] = {"type": "ping"}
