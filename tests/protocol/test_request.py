"""Every rule of a request: what is refused, with which path and words, and what is not."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import ContentBlock, TextBlock
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import CountTokensRequest, MessagesRequest
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


REFUSED: list[tuple[dict[str, JsonValue], str]] = [
    ({"messages": [HI]}, "model: Field required"),
    ({"model": "m"}, "messages: Field required"),
    (body(model=""), "model: String should have at least 1 character"),
    (body(model="m" * 257), "model: String should have at most 256 characters"),
    (body(model="m\0"), "model: String should contain printable characters only"),
    (body(model=1), "model: Input should be a valid string"),
    (body(messages="x"), "messages: Input should be a valid list"),
    (body(messages=[]), "messages: at least one message is required"),
    (body(messages=[1]), "messages.0: Input should be a valid dictionary"),
    (body(messages=[{"role": "user"}]), "messages.0.content: Field required"),
    (
        body(messages=[{"role": "wizard", "content": "x"}]),
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    (
        body(messages=[{"role": "assistant", "content": "x"}]),
        'messages: first message must use the "user" role',
    ),
    (
        body(messages=[{"role": "user", "content": None}]),
        "messages.0.content: Input should be a valid list",
    ),
    (
        body(messages=[{"role": "user", "content": ""}]),
        "messages.0: all messages must have non-empty content "
        "except for the optional final assistant message",
    ),
    (
        body(messages=[HI, {"role": "assistant", "content": []}, HI]),
        "messages.1: all messages must have non-empty content "
        "except for the optional final assistant message",
    ),
    (body(messages=user(text(""))), "messages: text content blocks must be non-empty"),
    (
        body(messages=user(text(" \n"))),
        "messages: text content blocks must contain non-whitespace text",
    ),
    (body(messages=user({"type": "text"})), "messages.0.content.0.text.text: Field required"),
    (body(messages=user({"text": "x"})), "messages.0.content.0.type: Field required"),
    (body(messages=user("x")), "messages.0.content.0: Input should be a valid dictionary"),
    (
        body(system=[text("x"), {"type": "imago"}]),
        "system.1: Input tag 'imago' found using 'type' "
        "does not match any of the expected tags: 'text'",
    ),
    (
        body(messages=user({"type": "text", "text": "x", "cache_control": {"type": "eternal"}})),
        "messages.0.content.0.text.cache_control.type: Input should be 'ephemeral'",
    ),
    (body(system=[text("")]), "system: text content blocks must be non-empty"),
    (body(system=7), "system: Input should be a valid list"),
    (body(max_tokens="8"), "max_tokens: Input should be a valid integer"),
    (body(max_tokens=8.0), "max_tokens: Input should be a valid integer"),
    (body(max_tokens=True), "max_tokens: Input should be a valid integer"),
    (body(max_tokens=-1), "max_tokens: Input should be greater than or equal to 0"),
    (
        body(max_tokens=1_000_001),
        "max_tokens: 1000001 > 1000000, which is the maximum allowed number of output tokens for m",
    ),
    (
        body(max_tokens=0, stream=True),
        "max_tokens: 0 only fills the cache and cannot be combined with `stream`",
    ),
    (
        body(stop_sequences=["a", " "]),
        "stop_sequences: each stop sequence must contain non-whitespace",
    ),
    (body(stop_sequences=[1]), "stop_sequences.0: Input should be a valid string"),
    (
        body(stop_sequences=["x"] * 8193),
        "stop_sequences: List should have at most 8192 items after validation, not 8193",
    ),
    (body(stream="yes"), "stream: Input should be a valid boolean"),
    (body(temperature=2.1), "temperature: Input should be less than or equal to 2"),
    (body(temperature=float("inf")), "temperature: Input should be a finite number"),
    (body(top_p=-0.1), "top_p: Input should be greater than or equal to 0"),
    (body(top_k=-1), "top_k: Input should be greater than or equal to 0"),
    (body(seed=1 << 63), "seed: Input should be less than or equal to 9223372036854775807"),
    (
        body(metadata={"user_id": "u" * 257}),
        "metadata.user_id: String should have at most 256 characters",
    ),
]


@pytest.mark.parametrize(("data", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_breaks_a_rule_is_refused_with_path_and_words(
    data: dict[str, JsonValue], message: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        MessagesRequest.parse(data)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": None},
        {"max_tokens": 0},
        {"max_tokens": 1_000_000},
        {"temperature": 0},
        {"temperature": 2},
        {"top_p": 0},
        {"top_k": 0},
        {"system": None},
        {"system": ""},
        {"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]},
        {"stop_sequences": None},
        {"metadata": {"user_id": None}},
        {"messages": [HI, HI, {"role": "assistant", "content": ""}]},
    ],
)
def test_what_the_api_allows_is_accepted(fields: dict[str, JsonValue]) -> None:
    MessagesRequest.parse(body(**fields))


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


def test_count_tokens_ignores_and_names_what_only_create_takes() -> None:
    result = validate(CountTokensRequest, body(stream=True, temperature=1), Dialect())
    assert sorted(result.ignored) == ["max_tokens", "stream", "temperature"]


def test_an_error_quotes_at_most_a_part_of_what_was_sent() -> None:
    with pytest.raises(InvalidRequest) as caught:
        MessagesRequest.parse(body(messages=user({"type": "x" * 100_000})))
    assert len(caught.value.message) < 2_100


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "role", "content"]), inner)
    ),
    max_leaves=8,
)
FIELDS = sorted(MessagesRequest.model_fields)


@given(st.dictionaries(st.sampled_from([*FIELDS, "tools"]), ANYTHING))
def test_whatever_is_sent_is_accepted_or_refused_and_nothing_else(fields: Any) -> None:
    with suppress(InvalidRequest):
        MessagesRequest.parse(body(**fields))


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
