"""A schema made ready says no more than it did."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from minimsg.constrain.recursion import recursive_references
from minimsg.constrain.schema import Spacing, Terms, made_ready
from minimsg.constrain.schema_parts import at, references
from tests.constrain.schemas import of

A: dict[str, Any] = {"type": "integer"}


def ready(schema: dict[str, Any], **terms: Any) -> dict[str, Any]:
    made = made_ready(schema, Terms(**terms))
    made.pop("x-guidance")
    return made


def test_required_properties_come_first_and_keep_their_order() -> None:
    schema = {"properties": {"a": A, "b": A, "c": A}, "required": ["c", "b"]}
    assert list(ready(schema)["properties"]) == ["b", "c", "a"]


def test_a_property_that_is_required_and_not_listed_may_be_anything() -> None:
    schema = {"properties": {"a": A}, "required": ["z"]}
    assert list(ready(schema)["properties"].items()) == [("z", True), ("a", A)]


@pytest.mark.parametrize(
    ("schema", "is_closed"),
    [
        ({"properties": {}}, True),
        ({"properties": {"a": A}}, True),
        ({"type": "object"}, False),
        ({"properties": {"a": A}, "patternProperties": {"^x": A}}, False),
        ({"properties": {"a": A}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, False),
        ({"properties": {"a": A}, "$ref": "#/$defs/b"}, False),
        ({"properties": {"a": A}, "minProperties": 2}, False),
    ],
)
def test_an_object_is_closed_where_nothing_else_speaks_of_it(
    schema: dict[str, Any], is_closed: bool
) -> None:
    assert (ready(schema).get("additionalProperties") is False) == is_closed
    assert "additionalProperties" not in ready(schema, is_closed=False)


def test_what_is_said_of_other_properties_stays() -> None:
    for others in (True, False, A):
        assert ready({"properties": {}, "additionalProperties": others})[
            "additionalProperties"
        ] == others  # fmt: skip


def test_parts_that_are_joined_stay_open_and_parts_on_their_own_are_closed() -> None:
    part = {"properties": {"a": A}}
    closed = {**part, "additionalProperties": False}
    assert ready({"allOf": [part, part]})["allOf"] == [part, part]
    assert ready({"anyOf": [part, part]})["anyOf"] == [closed, closed]
    assert ready({"properties": {"b": A}, "anyOf": [part]})["anyOf"] == [part]
    assert ready({"items": part})["items"] == closed
    assert ready({"$defs": {"x": part}})["$defs"] == {"x": closed}


def test_a_property_that_is_called_like_a_keyword_is_a_property() -> None:
    schema = {"properties": {"properties": A, "items": {"properties": {"a": A}}}}
    made = ready(schema)["properties"]
    assert made["properties"] == A
    assert made["items"]["additionalProperties"] is False


def test_values_are_left_as_they_are() -> None:
    value = {"properties": {"b": 1, "a": 2}, "required": ["a"]}
    schema = {"const": value, "enum": [value], "default": value}
    assert ready(schema) == schema


def test_items_that_need_not_be_unique_say_nothing() -> None:
    assert ready({"items": A, "uniqueItems": False}) == {"items": A}
    assert "uniqueItems" in ready({"items": A, "uniqueItems": True})


def test_the_terms_reach_the_engine() -> None:
    styles = [made_ready({}, Terms(spacing=spacing))["x-guidance"] for spacing in Spacing]
    assert all(isinstance(style, dict) and style["lenient"] is False for style in styles)
    assert len({str(style) for style in styles}) == len(Spacing)
    lenient = made_ready({"x-guidance": {"whitespace_flexible": True}}, Terms(is_lenient=True))
    style = lenient["x-guidance"]
    assert isinstance(style, dict)
    assert (style["lenient"], style["whitespace_flexible"]) == (True, False)


def test_references_are_found_and_followed() -> None:
    schema: dict[str, Any] = {"$defs": {"a/b": {"items": {"$ref": "#/x"}}}, "$ref": "#/$defs/a~1b"}
    assert sorted(references(schema)) == ["#/$defs/a~1b", "#/x"]
    assert at("#/$defs/a~1b", schema) == {"items": {"$ref": "#/x"}}
    assert at("#/$defs/no/where", schema) is None


LINKED = {"$ref": "#/$defs/node", "$defs": {"node": of({"next": {"$ref": "#/$defs/node"}})}}
PAIRED = {
    "anyOf": [{"$ref": "#/$defs/both"}, {"type": "integer"}],
    "$defs": {
        "side": {"anyOf": [{"$ref": "#/$defs/both"}, {"type": "integer"}]},
        "both": of({"left": {"$ref": "#/$defs/side"}, "right": {"$ref": "#/$defs/side"}},
            "left", "right"),
    },
}  # fmt: skip


def nested(key: str, times: int) -> dict[str, Any]:
    return {key: nested(key, times - 1)} if times else {}


def paired(times: int) -> Any:
    return {"left": 1, "right": paired(times - 1)} if times else 1


@pytest.mark.parametrize(
    ("schema", "good", "deep"),
    [(LINKED, nested("next", 6), nested("next", 40)), (PAIRED, paired(3), paired(40))],
)
def test_a_schema_that_refers_to_itself_is_followed_a_while(
    schema: dict[str, Any], good: Any, deep: Any
) -> None:
    made = made_ready(schema, Terms())
    validator = jsonschema.Draft202012Validator
    assert validator(schema).is_valid(deep)
    assert validator(made).is_valid(good)
    assert not validator(made).is_valid(deep)
    assert recursive_references(made) == []
