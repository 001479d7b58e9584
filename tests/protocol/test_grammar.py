"""The automaton of streams: what it accepts, what it refuses, and what it says then."""

from __future__ import annotations

import pytest

from minimsg.protocol.grammar import StreamGrammar, check

Json = dict[str, object]


def events(*kinds: str) -> list[Json]:
    """Events by short names: `start:0` is content_block_start with index 0."""
    names = {
        "message": "message_start",
        "start": "content_block_start",
        "delta": "content_block_delta",
        "stop": "content_block_stop",
        "ending": "message_delta",
        "end": "message_stop",
    }
    made: list[Json] = []
    for kind in kinds:
        name, _, index = kind.partition(":")
        made.append({"type": names.get(name, name)} | ({"index": int(index)} if index else {}))
    return made


@pytest.mark.parametrize(
    "kinds",
    [
        ["message", "ending", "end"],
        ["message", "start:0", "ping", "delta:0", "delta:0", "stop:0", "ending", "end"],
        ["message", "ping", "start:0", "stop:0", "start:1", "stop:1", "ending", "ping", "end"],
        ["message", "ending", "ending", "end"],
        ["error"],
        ["message", "start:0", "error"],
        ["message", "news", "ending", "end"],
    ],
    ids=" ".join,
)
def test_a_right_stream_is_accepted(kinds: list[str]) -> None:
    assert check(events(*kinds)) is None


@pytest.mark.parametrize(
    ("kinds", "complaint"),
    [
        (["ping"], "event 1, ping: the stream has not started"),
        (["message", "message"], "event 2, message_start: the stream is between blocks"),
        (["message", "delta:0"], "event 2, content_block_delta: the stream is between blocks"),
        (["message", "start:1"], "event 2, content_block_start: index 1 where 0 is due"),
        (["message", "start"], "event 2, content_block_start: index None where 0 is due"),
        (
            ["message", "start:0", "start:1"],
            "event 3, content_block_start: the stream has an open block",
        ),
        (
            ["message", "start:0", "stop:0", "start:0"],
            "event 4, content_block_start: index 0 where 1 is due",
        ),
        (["message", "start:0", "delta:1"], "event 3, content_block_delta: index 1 where 0 is due"),
        (["message", "start:0", "ending"], "event 3, message_delta: the stream has an open block"),
        (["message", "end"], "event 2, message_stop: the stream is between blocks"),
        (
            ["message", "ending", "start:0"],
            "event 3, content_block_start: the stream has had its message_delta",
        ),
        (["message", "ending", "end", "ping"], "event 4, ping: the stream has ended"),
        (["error", "end"], "event 2, message_stop: the stream has ended"),
        (["message", "ending"], "after 2 events: the stream has had its message_delta and is cut"),
        ([], "after 0 events: the stream has not started and is cut"),
    ],
)
def test_a_wrong_stream_is_refused_at_the_right_event(kinds: list[str], complaint: str) -> None:
    assert check(events(*kinds)) == complaint


def block(block_type: str, *delta_types: str) -> list[Json]:
    """A whole stream of one block."""
    start: Json = {"index": 0, "content_block": {"type": block_type}}
    deltas: list[Json] = [{"index": 0, "delta": {"type": delta}} for delta in delta_types]
    return [
        {"type": "message_start"},
        {"type": "content_block_start", **start},
        *({"type": "content_block_delta", **delta} for delta in deltas),
        *events("stop:0", "ending", "end"),
    ]


@pytest.mark.parametrize(
    ("block_type", "delta_types"),
    [
        ("text", ["text_delta", "citations_delta", "text_delta"]),
        ("thinking", ["thinking_delta", "signature_delta"]),
        ("tool_use", ["input_json_delta", "input_json_delta"]),
        ("server_tool_use", ["input_json_delta"]),
        ("text", ["news_delta"]),
        ("news", ["text_delta"]),
    ],
)
def test_a_delta_of_the_blocks_own_type_is_accepted(
    block_type: str, delta_types: list[str]
) -> None:
    assert check(block(block_type, *delta_types)) is None


@pytest.mark.parametrize(
    ("block_type", "delta_type"),
    [
        ("text", "input_json_delta"),
        ("tool_use", "text_delta"),
        ("thinking", "text_delta"),
        ("redacted_thinking", "thinking_delta"),
    ],
)
def test_a_delta_of_another_type_is_refused(block_type: str, delta_type: str) -> None:
    complaint = f"event 3, content_block_delta: {delta_type} in a block of type {block_type}"
    assert check(block(block_type, delta_type)) == complaint


def test_the_state_stays_where_it_was_after_a_wrong_event() -> None:
    grammar = StreamGrammar()
    assert grammar.push({"type": "ping"}) is not None
    assert grammar.push({"type": "message_start"}) is None
