"""The table of JSON Schema's keywords against the `jsonschema` library, on made-up schemas."""

from __future__ import annotations

from typing import Any, Final

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from minimsg.errors import InvalidRequest
from minimsg.protocol.rules.examples import misfit
from minimsg.protocol.rules.schemas import PARTS, SHAPES, check_schema

META: Final = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
KEYWORDS: Final = sorted({*SHAPES, *PARTS, "const", "default", "x-unknown"})

VALUES: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([1.5, 2.0, "object", "string", "a", "a b", "#", "x#y", "#/$defs/a"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", "b"]), inner, max_size=3)
    ),
    max_leaves=8,
)
SCHEMAS: Final = st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=3)


def takes(schema: Any) -> bool:
    try:
        check_schema("schema", schema)
    except InvalidRequest:
        return False
    return True


@settings(max_examples=300)
@given(SCHEMAS)
def test_a_schema_is_taken_if_the_library_takes_it(schema: Any) -> None:
    assert takes(schema) == META.is_valid(schema)


@pytest.mark.parametrize("keyword", KEYWORDS)
@given(value=VALUES)
@settings(max_examples=40)
def test_each_keyword_takes_what_the_library_takes(keyword: str, value: Any) -> None:
    assert takes({keyword: value}) == META.is_valid({keyword: value})


def test_every_keyword_of_the_draft_is_in_the_table() -> None:
    vocabularies = jsonschema.Draft202012Validator.META_SCHEMA["allOf"]
    resolver = META._resolver  # the library's own copies of the draft's parts
    named = set(jsonschema.Draft202012Validator.META_SCHEMA["properties"])
    for vocabulary in vocabularies:
        named |= set(resolver.lookup(vocabulary["$ref"]).contents["properties"])
    assert named - SHAPES.keys() - PARTS.keys() == {"const", "default"}  # which hold anything


PROPERTY: Final = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["string", "integer", "number", "boolean", "null", ["string", "null"]]
        ),
        "enum": st.lists(st.sampled_from([1, 2, "a", None]), min_size=1, max_size=3),
        "const": st.sampled_from([1, "a"]),
        "minimum": st.integers(0, 3),
        "exclusiveMaximum": st.integers(0, 3),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.just("^a+$"),
        "not": st.just({"type": "null"}),
        "anyOf": st.just([{"type": "string"}, {"minimum": 2}]),
        "oneOf": st.just([{"type": "string"}, {"type": "null"}]),
        "allOf": st.just([{"maximum": 2}]),
        "$ref": st.sampled_from(["#/$defs/d", "#/$defs/gone", "#"]),
        "items": st.just({"type": "integer"}),
        "prefixItems": st.just([{"type": "string"}]),
    },
)
OBJECT: Final = st.fixed_dictionaries(
    {"type": st.just("object"), "$defs": st.just({"d": {"type": ["integer", "object"]}})},
    optional={
        "properties": st.dictionaries(st.sampled_from("abc"), PROPERTY, max_size=3),
        "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
        "additionalProperties": st.booleans() | PROPERTY,
        "patternProperties": st.just({"^b": {"type": "integer"}}),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
    },
)
EXAMPLES: Final = st.dictionaries(
    st.sampled_from("abcd"),
    st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.sampled_from(["", "a", "aaa", 1.5, 2.0])
    | st.lists(st.sampled_from([1, "a"]), max_size=2),
    max_size=3,
)
LEFT_OUT: Final = {"pattern", "patternProperties", "not", "$ref", "oneOf"}


def names(schema: JsonValue) -> set[str]:
    """Every key in `schema`."""
    inside = (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    )
    keys = set(schema) if isinstance(schema, dict) else set()
    return keys.union(*map(names, inside))


@settings(max_examples=300)
@given(OBJECT, EXAMPLES)
def test_what_is_said_to_misfit_does(schema: Any, example: Any) -> None:
    if "$ref" in names(schema):
        return  # the library would look for what is gone, or go round in circles
    fits = jsonschema.Draft202012Validator(schema).is_valid(example)
    if misfit(schema, example) is not None:
        assert not fits
    elif not fits:
        assert names(schema) & LEFT_OUT, "a keyword that is looked at was broken"


@pytest.mark.parametrize(
    ("schema", "example", "place"),
    [
        ({"required": ["a"]}, {}, ". breaks required"),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "a breaks type"),
        ({"properties": {"a": {"items": {"enum": [1]}}}}, {"a": [1, 2]}, "a.1 breaks enum"),
        (
            {"properties": {"a": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"minimum": 2}}},
            {"a": 1},
            "a breaks minimum",
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": False}},
            {"a": 1},
            "a is not allowed",
        ),
        ({"additionalProperties": False}, {"a": 1}, "a is not allowed"),
        (
            {"properties": {"a": {"anyOf": [{"type": "null"}, {"const": 2}]}}},
            {"a": 1},
            "a breaks anyOf",
        ),
        ({"properties": {"a": {"$ref": "#"}}}, {"a": {"a": {}}}, None),
        ({"$ref": "#"}, {}, None),
        ({"properties": {"a": {"$ref": "https://x.example/s.json"}}}, {"a": 1}, None),
        ({"properties": {"a": {"$ref": "#name"}}, "type": "object"}, {"a": 1}, None),
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 30 + "!"}, None),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 2.0}, None),
        ({"properties": {"a": {"type": "integer"}}}, {"a": True}, "a breaks type"),
    ],
)
def test_where_an_example_misfits(schema: Any, example: Any, place: str | None) -> None:
    assert misfit(schema, example) == place
