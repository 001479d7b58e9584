"""Rows: what the schema of a tool must be, and examples of its input."""

from __future__ import annotations

from typing import Final

from .row import OK, Json, Row, schema, tool

INVALID: Final = "JSON schema is invalid. It must match JSON Schema draft 2020-12."

NO_TOP: Final = (
    "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf "
    "at the top level"
)


def invalid(place: str) -> str:
    return f"tools.0.custom.input_schema: {INVALID} See {place}."


LIST: Final[Json] = {"type": "array", "items": [{"type": "string"}]}  # older drafts

ROWS: Final = (
    Row(
        "a schema of every sort",
        {
            "tools": [
                tool(
                    input_schema={
                        "$schema": "https://json-schema.org/draft/2020-12/schema",
                        "type": "object",
                        "properties": {
                            "a": {"type": ["string", "null"], "pattern": "^(?!x).*$"},
                            "b": {"enum": [1, "x"]},
                            "c": {"$ref": "#/$defs/d"},
                            "d": True,
                        },
                        "required": ["a"],
                        "additionalProperties": False,
                        "$defs": {"d": {"minimum": 0}},
                    }
                )
            ]
        },
        OK,
    ),
    Row(
        "a pattern that never ends",
        {"tools": [schema(properties={"a": {"type": "string", "pattern": "^(a+)+$"}})]},
        OK,
    ),
    Row("a schema that is itself", {"tools": [schema(properties={"a": {"$ref": "#"}})]}, OK),
    Row(
        "a schema has a type",
        {"tools": [tool(input_schema={})]},
        "tools.0.custom.input_schema.type: Field required",
    ),
    Row(
        "which is object",
        {"tools": [tool(input_schema={"type": "array"})]},
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    Row("oneOf at the top", {"tools": [schema(oneOf=[{}])]}, NO_TOP),
    Row("anyOf at the top", {"tools": [schema(anyOf=[{}])]}, NO_TOP),
    Row("allOf at the top", {"tools": [schema(allOf=[{}])]}, NO_TOP),
    Row("anyOf below the top", {"tools": [schema(properties={"a": {"anyOf": [{}]}})]}, OK),
    Row(
        "a type that is none",
        {"tools": [schema(properties={"a": {"type": "text"}})]},
        invalid("properties.a.type"),
    ),
    Row(
        "properties are schemas",
        {"tools": [schema(properties={"a": "string"})]},
        invalid("properties.a"),
    ),
    Row("properties are an object", {"tools": [schema(properties=["a"])]}, invalid("properties")),
    Row("required is a list of names", {"tools": [schema(required=True)]}, invalid("required")),
    Row(
        "required names nothing twice",
        {"tools": [schema(required=["a", "a"])]},
        invalid("required"),
    ),
    Row(
        "items of an older draft",
        {"tools": [schema(properties={"a": LIST})]},
        invalid("properties.a.items"),
    ),
    Row(
        "bounds of an older draft",
        {"tools": [schema(properties={"a": {"exclusiveMinimum": True}})]},
        invalid("properties.a.exclusiveMinimum"),
    ),
    Row(
        "a length below zero",
        {"tools": [schema(properties={"a": {"maxLength": -1}})]},
        invalid("properties.a.maxLength"),
    ),
    Row(
        "a schema of more than 256 KB",
        {"tools": [schema(description="d" * 262_144)]},
        "tools.0.custom.input_schema: JSON schema is too large: 262181 characters > 262144 maximum",
    ),
    Row("an example", {"tools": [tool(input_examples=[{}])]}, OK),
    Row(
        "an example that lacks a part",
        {"tools": [{**schema(required=["a"]), "input_examples": [{"a": 1}, {}]}]},
        "tools.0.custom.input_examples.1: "
        "the example does not match input_schema: . breaks required",
    ),
    Row(
        "an example of another type",
        {"tools": [{**schema(properties={"a": {"type": "string"}}), "input_examples": [{"a": 1}]}]},
        "tools.0.custom.input_examples.0: the example does not match input_schema: a breaks type",
    ),
    Row(
        "an example is an object",
        {"tools": [tool(input_examples=["x"])]},
        "tools.0.custom.input_examples.0: Input should be a valid dictionary",
    ),
)
