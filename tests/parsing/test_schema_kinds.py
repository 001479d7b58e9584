"""Text as a value of what a schema takes; expected values are worked out by hand."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from minimsg.parsing.schema_kinds import ALL_KINDS, as_json, parameter_kinds

STRING: JsonValue = {"type": "string"}
INTEGER: JsonValue = {"type": "integer"}


def read(schema: JsonValue, text: str, **definitions: JsonValue) -> JsonValue:
    """What `text` is as a parameter of `schema`."""
    root: dict[str, JsonValue] = {"properties": {"p": schema}, "$defs": definitions}
    value: JsonValue = json.loads(as_json(text, parameter_kinds(root, "p")))
    return value


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (STRING, "12", "12"),
        (STRING, "null", "null"),
        (STRING, '"a"', '"a"'),
        (STRING, " a\n", " a\n"),
        (INTEGER, "12", 12),
        (INTEGER, " -1 ", -1),
        (INTEGER, "12.0", 12.0),
        (INTEGER, "twelve", "twelve"),
        (INTEGER, "true", "true"),
        ({"type": "number"}, "12", 12),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "False", False),
        ({"type": "null"}, "None", None),
        ({"type": "object"}, "{'a': [1, True]}", {"a": [1, True]}),
        ({"type": "array"}, "[]", []),
        ({"type": "array"}, "{}", "{}"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "nil", "nil"),
        ({"anyOf": [STRING, INTEGER]}, "02134", "02134"),
        ({"anyOf": [STRING, INTEGER]}, "2134", 2134),
        ({"oneOf": [{"type": "object"}, {"type": "null"}]}, "{}", {}),
        ({"enum": [1, 2]}, "1", 1),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": ["on", None]}, "null", None),
        ({"const": 3}, "3", 3),
        ({"type": "string", "enum": ["1"]}, "1", "1"),
        ({"$ref": "#/$defs/Count"}, "3", 3),
        ({"$ref": "#/$defs/List"}, "[3]", [3]),
        ({"$ref": "#/$defs/Missing"}, "3", 3),
        ({"$ref": "#/$defs/Itself"}, "3", "3"),
        ({}, "3", 3),
        ({}, "three", "three"),
        (True, "[3]", [3]),
    ],
)
def test_the_schema_says_what_a_text_is(schema: JsonValue, text: str, expected: JsonValue) -> None:
    found = read(
        schema,
        text,
        Count=INTEGER,
        List={"anyOf": [{"type": "array"}, {"$ref": "#/$defs/List"}]},
        Itself={"$ref": "#/$defs/Itself"},
    )
    assert (found, type(found)) == (expected, type(expected))


def test_a_parameter_that_the_schema_does_not_have_is_a_string() -> None:
    roots: list[dict[str, JsonValue]] = [{}, {"properties": {}}, {"properties": []}]
    for root in roots:
        assert as_json("3", parameter_kinds(root, "p")) == '"3"'


def test_schemas_that_refer_to_each_other_are_looked_up_once() -> None:
    names = [f"D{number}" for number in range(100)]
    everyone: list[JsonValue] = [{"$ref": f"#/$defs/{name}"} for name in names]
    definitions: dict[str, JsonValue] = {name: {"anyOf": [*everyone, INTEGER]} for name in names}
    root: dict[str, JsonValue] = {"properties": {"p": everyone[0]}, "$defs": definitions}
    assert parameter_kinds(root, "p") == {"integer", "number"}
    assert parameter_kinds({"properties": {"p": {}}}, "p") == ALL_KINDS
