"""JSON as models write it; the oracles are Python's json and the SDK's partial reader."""

from __future__ import annotations

import json

import jiter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from minimsg.parsing.json_text import MAX_DEPTH, JsonReader, read_json

numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
layouts = st.sampled_from([None, 1, 2])


@settings(max_examples=200)
@given(values, st.booleans(), layouts)
def test_strict_json_comes_out_as_it_went_in(
    value: JsonValue, ensure_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)
    assert read_json(text) == text


@settings(max_examples=200)
@given(st.dictionaries(st.text(max_size=3), values, max_size=4), st.data())
def test_wherever_it_is_closed_the_whole_is_json_and_holds_only_what_was_said(
    value: dict[str, JsonValue], data: st.DataObject
) -> None:
    text = json.dumps(value)
    reader = JsonReader()
    for character in text[: data.draw(st.integers(0, len(text)))]:
        assert reader.push(character)
    taken = reader.take()
    assert text.startswith(taken)
    if taken:
        jiter.from_json(taken.encode(), partial_mode=True)
        closed = json.loads(taken + reader.closing())
        assert list(closed) == list(value)[: len(closed)], "no member is invented"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("True", True),
        ("[False, None]", [False, None]),
        ("'it\\'s \"so\"'", 'it\'s "so"'),
        ("{'a': 'b'}", {"a": "b"}),
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, ]", [1, 2]),
        ('"a\nb\tc\x01"', "a\nb\tc\x01"),
        (r'"\d+ C:\users\new"', "\\d+ C:\\users\new"),
        ('"a\\\nb"', "a\\\nb"),
        (r'"\u12"', "\\u12"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud83d x"', "� x"),
        (r'"\ude00"', "�"),
        (r'"\ud83d\ud83d\ude00"', "�\U0001f600"),
        (r'"\ud83d\n"', "�\n"),
        (r'{"\ud83d": 1}', {"�": 1}),
        (" 1 ", 1),
    ],
)
def test_what_models_do_to_json_is_put_right(written: str, meant: JsonValue) -> None:
    strict = read_json(written)
    assert strict is not None
    assert json.loads(strict) == meant
    assert jiter.from_json(strict.encode()) == meant


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", '"a', "tru", "nul", "yes", "NaN", "Infinity", "-", "01", "1.", ".5", "1e", "+1"),
        *("1 2", "[1 2]", "[,1]", "{,}", '{"a"}', '{"a" 1}', '{"a": }', "{1: 2}", "{a: 1}", "[1}"),
        *("1e999", "-1e999", "9" * 401, '"a" "b"', "]", "}", "0x10", "// a\n1", '{"a": 1,,}'),
    ],
)
def test_what_cannot_be_put_right_is_refused(text: str) -> None:
    assert read_json(text) is None


def test_nesting_stops_where_a_request_could_not_send_it_back() -> None:
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_json(deepest) == deepest
    assert read_json(f"[{deepest}]") is None


def test_a_refused_character_changes_nothing() -> None:
    reader = JsonReader()
    assert all(map(reader.push, '{"a": ["x"'))
    assert not reader.push("}")
    assert all(map(reader.push, ", 1]}"))
    assert reader.take() == '{"a": ["x", 1]}'


def test_nothing_is_said_before_it_is_certain() -> None:
    reader = JsonReader()
    said = []
    for character in '{"a": -1, "b": true}':
        assert reader.push(character)
        said.append(reader.take())
    assert said[0] == "{"
    assert said[1:8] == [""] * 7
    assert said[8] == '"a": -1'
    assert "".join(said) == '{"a": -1, "b": true}'
