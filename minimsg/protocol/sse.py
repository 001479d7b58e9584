"""Server-sent events, both directions: `encode` writes a frame, `Decoder` reads them.

Knows bytes, lines and frames; what a frame says is in `events.py`. The decoder gives
the same frames however the bytes were cut. Source: WHATWG HTML, section 9.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

JSON: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))

# Some clients cut lines with Python's str.splitlines, which also cuts at these three.
LINE_BREAKS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def encode(event: Mapping[str, object]) -> bytes:
    """One frame: `event: TYPE`, `data: JSON`, a blank line."""
    return f"event: {event['type']}\ndata: {to_json(event)}\n\n".encode()


def to_json(value: object) -> str:
    """JSON on one line, UTF-8 kept as it is; NaN is our bug and raises ValueError."""
    text = JSON.encode(value)
    return text if text.isascii() else text.translate(LINE_BREAKS)


@dataclass(frozen=True)
class Frame:
    """One frame as it came. `is_complete` is false if the blank line after it is missing."""

    event: str
    data: str
    is_complete: bool = True

    def json(self) -> JsonValue:
        """The data as JSON. Raises ValueError."""
        value: JsonValue = json.loads(self.data)
        return value


class Decoder:
    """Bytes in, frames out. Comments and the fields `id` and `retry` are dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_after_cr = False
        self._event = ""
        self._data: list[str] = []

    def push(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes."""
        if self._is_after_cr and data:
            data = data.removeprefix(b"\n")  # the second half of a line end that was cut
            self._is_after_cr = False
        self._is_after_cr = self._is_after_cr or data.endswith(b"\r")
        *lines, self._rest = _lines(self._rest + data)
        return [frame for line in lines for frame in self._read(line)]

    def flush(self) -> list[Frame]:
        """The frame that the end of the stream cut, if there is one."""
        line, self._rest = self._rest, b""
        frames = self._read(line) if line else []
        last = self._read(b"")
        return frames + [Frame(frame.event, frame.data, is_complete=False) for frame in last]

    def _read(self, line: bytes) -> list[Frame]:
        if not line:
            frames = [Frame(self._event, "\n".join(self._data))] if self._data else []
            self._event, self._data = "", []
            return frames
        name, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        return []


def _lines(data: bytes) -> list[bytes]:
    """`data` cut at CR, LF and CRLF; the last piece is what follows the last line end."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
