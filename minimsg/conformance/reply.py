"""What came back, as expressions and checks see it: status, headers, JSON, events, message.

A stream is folded into the message it describes, leniently: whatever is wrong with it is
for `streams.py` to say. A plain answer and a streamed one look the same from here on.
Source: Messages API streaming page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from minimsg.conformance.case import Json
from minimsg.conformance.wire import Exchange
from minimsg.protocol.sse import Decoder, Frame

GROWING: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}  # kind of delta -> its key, which is that of the block but for partial_json


@dataclass(frozen=True)
class Reply:
    """An exchange, read. Its properties are what `expression.py` may ask for."""

    exchange: Exchange

    @property
    def status(self) -> int:
        """0 where no status came."""
        return self.exchange.response.status or 0

    @cached_property
    def headers(self) -> dict[str, str]:
        """By name in lower case; several of one name are joined."""
        response = self.exchange.response
        return {name: response.header(name) or "" for name, _ in response.headers}

    @cached_property
    def raw(self) -> bytes:
        """The body, decompressed; as it came where it cannot be."""
        try:
            return self.exchange.response.content()
        except ValueError:
            return self.exchange.response.body

    @property
    def source(self) -> str:
        """The body as text."""
        return self.raw.decode(errors="replace")

    @property
    def is_stream(self) -> bool:
        return "text/event-stream" in self.headers.get("content-type", "")

    @cached_property
    def frames(self) -> list[Frame]:
        decoder = Decoder()
        return decoder.push(self.raw) + decoder.flush() if self.is_stream else []

    @cached_property
    def events(self) -> list[Json]:
        """The data of each frame; one that is no JSON object is left out."""
        return [event for frame in self.frames if (event := parse_object(frame.data)) is not None]

    @property
    def start(self) -> object:
        """The message of message_start, wherever that stands; None without one."""
        begun = (event for event in self.events if event.get("type") == "message_start")
        return next(begun, {}).get("message")

    @cached_property
    def body(self) -> object:
        """The JSON of the answer, the message of a stream, or None."""
        if self.is_stream:
            return fold(self.events)
        try:
            value: object = json.loads(self.raw, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        return value

    @cached_property
    def lines(self) -> list[object]:
        """The body as JSON Lines; a line that is no JSON is None."""
        return [parse_object(line) for line in self.source.split("\n") if line]

    @property
    def error(self) -> object:
        """The error object, of an answer or of the event that ends a stream."""
        body = self.body if not self.is_stream else (self.events[-1] if self.events else None)
        return body.get("error") if isinstance(body, Mapping) else None

    @cached_property
    def text(self) -> str:
        """All that text blocks say."""
        return "".join(str(block.get("text", "")) for block in self.blocks_of("text"))

    @property
    def citations(self) -> list[object]:
        """All that text blocks cite, in order."""
        found = (block.get("citations") for block in self.blocks_of("text"))
        return [each for cited in found if isinstance(cited, list) for each in cited]

    def blocks_of(self, kind: str) -> list[Json]:
        """The content blocks of one type."""
        content = self.body.get("content") if isinstance(self.body, Mapping) else None
        blocks = content if isinstance(content, list) else []
        return [block for block in blocks if isinstance(block, dict) and block.get("type") == kind]

    @property
    def flow_s(self) -> float:
        """From the first piece of a stream that has text in it to the last one."""
        pieces = self.exchange.pieces
        times = [each.at_s for each in pieces if not each.is_sent and b"text_delta" in each.data]
        return max(times) - min(times) if times else 0.0

    @property
    def seconds(self) -> float:
        """From the connection to the last byte."""
        return self.exchange.end_s


def parse_object(text: str) -> Json | None:
    """The JSON object that `text` is, or None."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> object:
    """NaN and Infinity are Python's: no other client reads them."""
    raise ValueError(f"{constant} is no JSON")


def fold(events: list[Json]) -> Json | None:
    """The message that `events` describe, as far as they do; None without a message_start."""
    message: Json | None = None
    blocks: dict[object, Json] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start" and message is None:
            message = dict(_object(event, "message"))
        elif kind == "content_block_start":
            blocks[event.get("index")] = dict(_object(event, "content_block"))
        elif kind == "content_block_delta":
            _grow(blocks.setdefault(event.get("index"), {}), _object(event, "delta"))
        elif kind == "message_delta" and message is not None:
            message |= _object(event, "delta")
            message["usage"] = _object(message, "usage") | _present(_object(event, "usage"))
    if message is not None:
        message["content"] = [_whole(block) for block in blocks.values()]
    return message


def _grow(block: Json, delta: Json) -> None:
    key = GROWING.get(str(delta.get("type")))
    if delta.get("type") == "citations_delta":
        before = block.get("citations")
        block["citations"] = [*(before if isinstance(before, list) else []), delta.get("citation")]
    if key is not None:
        block[key] = str(block.get(key, "")) + str(delta.get(key, ""))


def _whole(block: Json) -> Json:
    """`block` with its input parsed; one that is no JSON stays as `partial_json`."""
    partial = block.get("partial_json")
    if partial is None:
        return block
    parsed = parse_object(str(partial) or "{}")
    if parsed is None:
        return block
    return {k: v for k, v in block.items() if k != "partial_json"} | {"input": parsed}


def _object(parent: Mapping[str, object], key: str) -> Json:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _present(usage: Json) -> Json:
    """A null in the last usage leaves what message_start said, as the SDKs read it."""
    return {key: value for key, value in usage.items() if value is not None}
