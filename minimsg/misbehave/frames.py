"""Streams whose bytes are wrong: names, blank lines, UTF-8, JSON."""

from __future__ import annotations

from typing import Final

from minimsg.misbehave.mutant import mutants


def no_names(data: bytes) -> bytes:
    """Frames have no event line."""
    return b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"event:"))


def wrong_names(data: bytes) -> bytes:
    """Every frame is called message."""
    lines = data.split(b"\n")
    return b"\n".join(b"event: message" if x.startswith(b"event:") else x for x in lines)


def done_at_the_end(data: bytes) -> bytes:
    """The stream ends with data: [DONE]."""
    return data + b"data: [DONE]\n\n"


def bad_utf8(data: bytes) -> bytes:
    """A byte of a stream is no UTF-8."""
    return data.replace(b'"text_delta","text":"', b'"text_delta","text":"\xff', 1)


def no_last_blank_line(data: bytes) -> bytes:
    """The last frame has no blank line after it."""
    return data[:-1]


def no_blank_lines(data: bytes) -> bytes:
    """Frames are not parted by blank lines."""
    return data.replace(b"\n\n", b"\n")


def raw_line_break(data: bytes) -> bytes:
    """A line break inside data is not escaped."""
    return data.replace(b'"type":"message_stop"', b'"type":\n"message_stop"')


def no_field(data: bytes) -> bytes:
    """Lines of a stream have no field name."""
    return data.replace(b"data: ", b"", 1)


def python_repr(data: bytes) -> bytes:
    """Data is Python's repr, not JSON."""
    return data.replace(b'{"type":"message_stop"}', b"{'type': 'message_stop'}")


def kept_until_the_end(data: bytes) -> bytes:
    """A stream is kept until the reply is whole."""
    return data


MUTANTS: Final = mutants(
    "frames",
    {
        no_names: "stream.names*",
        wrong_names: "stream.names*",
        done_at_the_end: "stream.[ed]*",
        bad_utf8: "stream.encoding*",
        no_last_blank_line: "stream.frames*",
        no_blank_lines: "stream.*",
        raw_line_break: "stream.[ld]*",
        no_field: "stream.[ld]*",
        kept_until_the_end: "stream.flows",
        python_repr: "stream.data*",
    },
)
