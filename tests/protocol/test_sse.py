"""Frames: what is written, and that reading does not depend on how the bytes were cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minimsg.protocol.events import PING
from minimsg.protocol.sse import Decoder, Frame, encode, to_json


def decode(*pieces: bytes) -> list[Frame]:
    decoder = Decoder()
    frames = [frame for piece in pieces for frame in decoder.push(piece)]
    return frames + decoder.flush()


def test_a_ping_is_these_bytes() -> None:
    assert encode(PING) == b'event: ping\ndata: {"type":"ping"}\n\n'


@given(st.text())
def test_text_of_any_kind_stays_inside_its_frame(text: str) -> None:
    data = encode(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    )
    [frame] = decode(data)
    assert frame.event == "content_block_delta"
    assert json.loads(frame.data)["delta"]["text"] == text
    assert len(data.decode().splitlines()) == 3  # also for clients that cut lines like Python


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        to_json({"x": float("nan")})


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_frames_are_the_same_at_every_split(line_end: bytes) -> None:
    lines = ["event: a", 'data: {"é":"\U0001f680"}', "", ": comment", "data: 1", "data:2", "", ""]
    stream = line_end.join(line.encode() for line in lines)
    expected = [Frame("a", '{"é":"\U0001f680"}'), Frame("", "1\n2")]
    for cut in range(len(stream) + 1):
        assert decode(stream[:cut], stream[cut:]) == expected
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == expected


def test_a_last_frame_without_a_blank_line_is_reported_as_incomplete() -> None:
    assert decode(b"event: a\ndata: 1\n\nevent: b\ndata: 2") == [
        Frame("a", "1"),
        Frame("b", "2", is_complete=False),
    ]


def test_a_name_without_data_is_no_frame() -> None:
    assert decode(b"event: a\n\ndata: 1\n\n") == [Frame("", "1")]
