"""A request as it is read: strings as blocks, turns, unknown fields, JSON that is none.

What is refused, and with which words, is the table of `test_rules_table.py`.
"""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import ContentBlock, TextBlock
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import MessagesRequest
from minimsg.protocol.turns import turns_of
from minimsg.protocol.validation import parse_json, validate

HI: JsonValue = {"role": "user", "content": "hi"}


def body(**fields: JsonValue) -> dict[str, JsonValue]:
    return {"model": "m", "max_tokens": 8, "messages": [HI], **fields}


def user(*blocks: JsonValue) -> JsonValue:
    return [{"role": "user", "content": list(blocks)}]


def text(value: JsonValue) -> JsonValue:
    return {"type": "text", "text": value}


def text_of(block: ContentBlock) -> str:
    assert isinstance(block, TextBlock)
    return block.text


def test_a_string_is_the_same_as_one_text_block() -> None:
    plain = MessagesRequest.parse(body(system="s", messages=[{"role": "user", "content": "x"}]))
    blocks = MessagesRequest.parse(body(system=[text("s")], messages=user(text("x"))))
    assert plain == blocks


def test_neighbours_of_the_same_role_become_one_turn_and_an_empty_last_one_is_left_out() -> None:
    def message(role: str, content: str) -> JsonValue:
        return {"role": role, "content": content}

    sent = [message("user", "a"), message("user", "b"), message("assistant", "c")]
    request = MessagesRequest.parse(
        body(messages=[*sent, message("user", "d"), message("assistant", "")])
    )
    turns = [
        (turn.role, [text_of(placed.block) for placed in turn.blocks])
        for turn in turns_of(request.messages)
    ]
    assert turns == [("user", ["a", "b"]), ("assistant", ["c"]), ("user", ["d"])]


def test_unknown_fields_at_any_level_are_left_out_and_named() -> None:
    data = body(
        tool=[],
        system=[{"type": "text", "text": "s", "lang": "en"}],
        messages=[
            {
                "role": "user",
                "type": "content",
                "content": [{"type": "text", "text": "x", "text2": 1}],
            }
        ],
    )
    result = validate(MessagesRequest, data, Dialect())
    assert sorted(result.ignored) == [
        "messages.0.content.0.text.text2",
        "messages.0.type",
        "system.0.text.lang",
        "tool",
    ]
    assert text_of(result.request.messages[0].content[0]) == "x"


def test_an_unknown_field_does_not_hide_a_broken_rule() -> None:
    with pytest.raises(InvalidRequest, match=r"^messages: text content blocks must be non-empty$"):
        MessagesRequest.parse(body(tool=[], messages=user(text(""))))


def test_many_unknown_fields_are_counted_instead_of_named() -> None:
    def blocks(number: int) -> list[JsonValue]:
        return [{"type": "text", "text": "x", "id": n} for n in range(number)]

    many = body(messages=user(*blocks(1_001)))
    assert validate(MessagesRequest, many, Dialect()).ignored == ["1001-fields"]
    few = body(messages=user(*blocks(1_000)))
    assert len(validate(MessagesRequest, few, Dialect()).ignored) == 1_000


def test_an_error_quotes_at_most_a_part_of_what_was_sent() -> None:
    with pytest.raises(InvalidRequest) as caught:
        MessagesRequest.parse(body(messages=user({"type": "x" * 100_000})))
    assert len(caught.value.message) < 2_100


NOT_JSON = [
    b"",
    b"{",
    b"{'a': 1}",
    b"[1]",
    b"3",
    b"\xef\xbb\xbf{}",
    "{}".encode("utf-16"),
    b'{"a":"\xff"}',
    b'{"a":"\\ud800"}',
    b'{"a":' + b"[" * 5_000,
    b'{"a":1' + b"0" * 5_000 + b"}",
]


@pytest.mark.parametrize("data", NOT_JSON, ids=lambda data: repr(data[:12]))
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^The request body is not valid JSON: "):
        parse_json(data)


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_number_that_json_does_not_have_is_refused_by_its_path(literal: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^a\.1\.b: Input should be a finite number$"):
        parse_json(b'{"a":[0,{"b":' + literal + b"}]}")


def test_the_last_of_equal_keys_counts() -> None:
    assert parse_json(b'{"model":"a","model":"b"}') == {"model": "b"}
