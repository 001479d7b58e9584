"""Segments to events, and events to a message: the last step of a reply.

`EventBuilder` opens, grows and closes content blocks; `fold` adds the events up again,
which is how an answer that is not streamed is made. Knows the order of events (checked
by `grammar.py`) and nothing of tokens, stop sequences or HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from pydantic import JsonValue
from pydantic_core import from_json

from minimsg.parsing.segments import (
    CitedSegment,
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.protocol.cited import ReplyCitation
from minimsg.protocol.events import PING, Delta, Event, MessageDelta
from minimsg.protocol.message import Content, Display, Message, StopReason, TextContent, new_id
from minimsg.protocol.usage import InputUsage, final_usage


def unsigned(thinking: str) -> str:
    """The signature of a server that signs nothing."""
    return ""


class EventBuilder:
    """Turns what the model says into the events of one message.

    Invariant: at most one block is open; a block of text or thinking is opened by its
    first text. `sign` gives the signature of a thinking block for its whole text, which
    with `display` "omitted" is not shown. A reply that may be cited (`is_cited`) says so in
    each block of text.
    """

    def __init__(
        self,
        message: Message,
        *,
        display: Display = "shown",
        sign: Callable[[str], str] = unsigned,
        is_cited: bool = False,
    ) -> None:
        self._message = message
        self._usage: InputUsage = message["usage"]  # of the prompt, as far as it is known
        self._display = display
        self._sign = sign
        self._is_cited = is_cited
        self._num_blocks = 0
        self._open_type: Literal["text", "thinking", "tool_use"] | None = None
        self._thinking: list[str] = []  # of the open block
        self._has_call = False  # a complete one

    def count(self, usage: InputUsage) -> None:
        """What the prompt cost; may be corrected until the reply is finished."""
        self._usage = usage

    def start(self) -> list[Event]:
        """The first event, before anything is generated."""
        self._message["usage"] = {**self._message["usage"], **self._usage}
        return [{"type": "message_start", "message": self._message}]

    def push(self, segment: Segment) -> list[Event]:
        """The events that show `segment`."""
        match segment:
            case TextSegment(text):
                return [*self._in_text(), self._delta({"type": "text_delta", "text": text})]
            case CitedSegment(text, citations):
                return self._cite(text, citations)
            case ThinkingSegment(text):
                return self._think(text)
            case ToolCallStart(name):
                return self._begin_call(name)
            case ToolCallInput(fragment):
                return [self._delta({"type": "input_json_delta", "partial_json": fragment})]
            case ToolCallEnd():
                self._has_call = True
                return self._close()

    def finish(
        self,
        stop_reason: StopReason,
        stop_sequence: str | None,
        output_tokens: int,
        thinking_tokens: int | None = None,
    ) -> list[Event]:
        """The last events of a reply that succeeded; after a call its turn ends in `tool_use`.

        `thinking_tokens`: those of the output tokens that were thinking; None if the model
        does not think.
        """
        started = self._message["usage"]
        is_call = self._has_call and stop_reason == "end_turn"
        ending: MessageDelta = {
            "type": "message_delta",
            "delta": {
                "stop_reason": "tool_use" if is_call else stop_reason,
                "stop_sequence": stop_sequence,
                "stop_details": None,
            },
            "usage": final_usage(self._usage, started, output_tokens, thinking_tokens),
        }
        if "context_management" in self._message:
            ending["context_management"] = self._message["context_management"]
        return [*self._close(), ending, {"type": "message_stop"}]

    def _in_text(self) -> list[Event]:
        return [] if self._open_type == "text" else self._open(self._empty_text())

    def _empty_text(self) -> TextContent:
        if self._is_cited:
            return {"type": "text", "text": "", "citations": None}
        return {"type": "text", "text": ""}

    def _cite(self, text: str, citations: Iterable[ReplyCitation]) -> list[Event]:
        """A block of its own, since its citations are for all of its text."""
        events = self._open(self._empty_text())
        events.append(self._delta({"type": "text_delta", "text": text}))
        for citation in citations:
            events.append(self._delta({"type": "citations_delta", "citation": citation}))
        return [*events, *self._close()]

    def _think(self, text: str) -> list[Event]:
        if self._display == "none":
            return self._close()  # text before and after it is not one text
        events: list[Event] = []
        if self._open_type != "thinking":
            events = self._open({"type": "thinking", "thinking": "", "signature": ""})
        self._thinking.append(text)
        if self._display == "shown":
            events.append(self._delta({"type": "thinking_delta", "thinking": text}))
        return events

    def _begin_call(self, name: str) -> list[Event]:
        opening = self._open(
            {
                "type": "tool_use",
                "id": new_id("toolu_"),
                "name": name,
                "input": {},
                "caller": {"type": "direct"},
            }
        )
        return [*opening, self._delta({"type": "input_json_delta", "partial_json": ""})]

    def _delta(self, delta: Delta) -> Event:
        assert self._open_type is not None
        return {"type": "content_block_delta", "index": self._num_blocks - 1, "delta": delta}

    def _open(self, block: Content) -> list[Event]:
        events = self._close()
        events.append(
            {"type": "content_block_start", "index": self._num_blocks, "content_block": block}
        )
        self._open_type = block["type"]
        self._num_blocks += 1
        # The hosted API sends its first ping here, and clients' fixtures expect it.
        return [*events, PING] if self._num_blocks == 1 else events

    def _close(self) -> list[Event]:
        if self._open_type is None:
            return []
        events: list[Event] = []
        if self._open_type == "thinking":
            signature = self._sign("".join(self._thinking))
            self._thinking = []
            events.append(self._delta({"type": "signature_delta", "signature": signature}))
        self._open_type = None
        return [*events, {"type": "content_block_stop", "index": self._num_blocks - 1}]


def fold(events: Iterable[Event]) -> Message:
    """The message that `events`, a complete stream without an error, describe."""
    message: Message | None = None
    content: list[Content] = []
    pieces: list[list[str]] = []  # the text, thinking or input of each block
    for event in events:
        if event["type"] == "message_start":
            message = event["message"].copy()
        elif event["type"] == "content_block_start":
            content.append(event["content_block"].copy())
            pieces.append([])
        elif event["type"] == "content_block_delta":
            _add(content[event["index"]], pieces[event["index"]], event["delta"])
        elif event["type"] == "message_delta" and message is not None:
            message["stop_reason"] = event["delta"]["stop_reason"]
            message["stop_sequence"] = event["delta"]["stop_sequence"]
            message["usage"] = {**message["usage"], **event["usage"]}
    if message is None:
        raise ValueError("a stream without message_start is no message")
    message["content"] = [_whole(*block) for block in zip(content, pieces, strict=True)]
    return message


def _add(block: Content, pieces: list[str], delta: Delta) -> None:
    match delta["type"]:
        case "text_delta":
            pieces.append(delta["text"])
        case "thinking_delta":
            pieces.append(delta["thinking"])
        case "input_json_delta":
            pieces.append(delta["partial_json"])
        case "citations_delta":
            assert block["type"] == "text"
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        case "signature_delta":
            assert block["type"] == "thinking"
            block["signature"] = delta["signature"]


def _whole(block: Content, pieces: list[str]) -> Content:
    """`block` with its pieces added up."""
    text = "".join(pieces)
    match block["type"]:
        case "text":
            block["text"] = text
        case "thinking":
            block["thinking"] = text
        case "tool_use":
            block["input"] = _input(text)
    return block


def _input(text: str) -> dict[str, JsonValue]:
    """The object that `text` is or begins, as the official SDK reads it; "" is `{}`."""
    input: dict[str, JsonValue] = from_json(text or "{}", allow_partial=True)
    return input
