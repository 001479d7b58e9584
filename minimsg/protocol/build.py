"""Segments to events, and events to a message: the last step of a reply.

`EventBuilder` opens, grows and closes content blocks; `fold` adds the events up again,
which is how an answer that is not streamed is made. Knows the order of events (checked
by `grammar.py`) and nothing of tokens, stop sequences or HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable

from minimsg.parsing.segments import Segment
from minimsg.protocol.events import PING, ContentBlockStart, Event, MessageDelta
from minimsg.protocol.message import Message, StopReason


class EventBuilder:
    """Turns what the model says into the events of one message.

    Invariant: at most one block is open; an empty block is never opened.
    """

    def __init__(self, message: Message) -> None:
        self._message = message
        self._num_blocks = 0
        self._is_open = False

    def start(self) -> list[Event]:
        """The first event, before anything is generated."""
        return [{"type": "message_start", "message": self._message}]

    def push(self, segment: Segment) -> list[Event]:
        """The events that show `segment`."""
        events = [] if self._is_open else self._open()
        index = self._num_blocks - 1
        delta: Event = {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "text_delta", "text": segment.text},
        }
        return [*events, delta]

    def finish(
        self, stop_reason: StopReason, stop_sequence: str | None, output_tokens: int
    ) -> list[Event]:
        """The last events of a reply that succeeded."""
        usage = self._message["usage"]
        ending: MessageDelta = {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": stop_sequence},
            "usage": {
                "input_tokens": usage["input_tokens"],
                "cache_creation_input_tokens": usage["cache_creation_input_tokens"],
                "cache_read_input_tokens": usage["cache_read_input_tokens"],
                "output_tokens": output_tokens,
            },
        }
        return [*self._close(), ending, {"type": "message_stop"}]

    def _open(self) -> list[Event]:
        start: ContentBlockStart = {
            "type": "content_block_start",
            "index": self._num_blocks,
            "content_block": {"type": "text", "text": ""},
        }
        self._is_open = True
        self._num_blocks += 1
        # The hosted API sends its first ping here, and clients' fixtures expect it.
        return [start, PING] if self._num_blocks == 1 else [start]

    def _close(self) -> list[Event]:
        if not self._is_open:
            return []
        self._is_open = False
        return [{"type": "content_block_stop", "index": self._num_blocks - 1}]


def fold(events: Iterable[Event]) -> Message:
    """The message that `events`, a complete stream without an error, describe."""
    message: Message | None = None
    texts: list[list[str]] = []
    for event in events:
        if event["type"] == "message_start":
            message = event["message"].copy()
        elif event["type"] == "content_block_start":
            texts.append([event["content_block"]["text"]])
        elif event["type"] == "content_block_delta":
            texts[event["index"]].append(event["delta"]["text"])
        elif event["type"] == "message_delta" and message is not None:
            message["stop_reason"] = event["delta"]["stop_reason"]
            message["stop_sequence"] = event["delta"]["stop_sequence"]
            message["usage"] = {**message["usage"], **event["usage"]}
    if message is None:
        raise ValueError("a stream without message_start is no message")
    message["content"] = [{"type": "text", "text": "".join(parts)} for parts in texts]
    return message
