"""The strict profile takes the part of JSON Schema that the hosted API enforces, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from minimsg.constrain.constraint import check_strictly
from minimsg.constrain.subset import check_amount, check_subset
from minimsg.errors import InvalidRequest
from minimsg.protocol.request import PromptRequest

TEXT: dict[str, Any] = {"type": "string"}
POINTER: dict[str, Any] = {"$ref": "#/$defs/p"}


def closed(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required),
        "additionalProperties": False, **more}  # fmt: skip


TAKEN: list[dict[str, Any]] = [
    closed({}),
    closed({"a": TEXT, "b": {"type": "integer"}}, "a"),
    closed({"a": {"type": ["string", "null"], "description": "x", "default": None}}),
    closed({"a": {"enum": ["a", 1, None, True]}, "b": {"const": 5}}),
    closed({"a": {"type": "array", "items": TEXT, "minItems": 1}}),
    closed({"a": {"type": "string", "format": "date-time"}, "b": {"type": "string",
        "pattern": r"^[a-z]{2,40}\d+(?:x|y)\.$"}}),
    closed({"a": POINTER, "b": POINTER}, **{"$defs": {"p": closed({})}}),
    closed({"a": {"anyOf": [TEXT, closed({})]}, "b": {"allOf": [TEXT]}}),
    {"type": "array", "items": {"type": "boolean"}},
]  # fmt: skip

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "object", "properties": {}},
        "For 'object' type, 'additionalProperties' must be explicitly set to false"),
    (closed({"a": {**closed({}), "additionalProperties": True}}),
        "For 'object' type, 'additionalProperties: true' is not supported. "
        "Please set 'additionalProperties' to false"),
    ({"type": "object", "additionalProperties": TEXT},
        "For 'object' type, 'additionalProperties: object' is not supported. "
        "Please set 'additionalProperties' to false"),
    (closed({"a": {"type": "array", "items": TEXT, "maxItems": 5}}),
        "For 'array' type, property 'maxItems' is not supported"),
    (closed({"a": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 5}}),
        "For 'array' type, 'minItems' values other than 0 or 1 are not supported (got: [2, 5])"),
    (closed({"a": {"type": "array", "items": TEXT, "minItems": 6}}),
        "For 'array' type, 'minItems' values other than 0 or 1 are not supported (got: [6, ∞])"),
    (closed({"a": {"type": "number", "minimum": 0, "maximum": 1}}),
        "For 'number' type, properties maximum, minimum are not supported"),
    (closed({"a": {"type": "integer", "minimum": 0}}),
        "For 'integer' type, property 'minimum' is not supported"),
    (closed({"a": {"type": "string", "maxLength": 5}}),
        "For 'string' type, property 'maxLength' is not supported"),
    (closed({}, propertyNames={"pattern": "a"}),
        "For 'object' type, property 'propertyNames' is not supported"),
    (closed({"a": {"oneOf": [TEXT]}}), "Schema type 'oneOf' is not supported"),
    (closed({"a": {}}), "Invalid schema: Schema type is missing"),
    (closed({"a": True}), "Invalid schema: Schema type is missing"),
    (closed({"a": {"enum": [{"x": 1}]}}),
        "'enum' values other than strings, numbers, booleans and null are not supported"),
    (closed({"a": {"type": "string", "format": "color"}}),
        "For 'string' type, format 'color' is not supported"),
    (closed({"a": {"type": "string", "pattern": "^(?!x)"}}),
        "For 'string' type, 'pattern' with lookarounds is not supported"),
    (closed({"a": {"type": "string", "pattern": r"(a)\1"}}),
        "For 'string' type, 'pattern' with backreferences is not supported"),
    (closed({"a": {"type": "string", "pattern": r"\bword"}}),
        "For 'string' type, 'pattern' with word boundaries is not supported"),
    (closed({"a": {"type": "string", "pattern": "a{1,100000}"}}),
        "For 'string' type, 'pattern' with counts over 1000 is not supported"),
    (closed({"a": {"$ref": "https://example.com/x"}}),
        "'$ref' to 'https://example.com/x' is not supported: there is no such definition"),
    (closed({"a": {"allOf": [{"$ref": "#/$defs/p"}]}}, **{"$defs": {"p": TEXT}}),
        "'allOf' with '$ref' is not supported"),
    (closed({"a": {"$ref": "#/$defs/p"}}, **{"$defs": {"p": closed({"q": {"$ref": "#/$defs/p"}})}}),
        "Recursive schemas are not supported: '#/$defs/p' refers to itself"),
    (closed({"a": {"$ref": "#/$defs/p"}}, **{"$defs": {
        "p": {"type": "array", "items": {"$ref": "#/$defs/q"}},
        "q": {"anyOf": [TEXT, {"$ref": "#/$defs/p"}]}}}),
        "Recursive schemas are not supported: '#/$defs/p' refers to itself"),
]  # fmt: skip


@pytest.mark.parametrize("schema", TAKEN)
def test_what_is_enforced_is_taken(schema: dict[str, Any]) -> None:
    check_subset("tools.0.custom", schema)


@pytest.mark.parametrize(("schema", "why"), REFUSED)
def test_what_is_not_enforced_is_refused_in_the_words_of_the_hosted_api(
    schema: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        check_subset("tools.0.custom", schema)
    assert error.value.message == f"tools.0.custom: {why}"


@pytest.mark.parametrize("pattern", [r"\\b", r"\(\?=", r"a{2}\{99999\}", "(?<name>a)"])
def test_a_pattern_that_only_looks_hard_is_taken(pattern: str) -> None:
    check_subset("x", closed({"a": {"type": "string", "pattern": pattern}}))


def test_twenty_strict_tools_are_the_most() -> None:
    check_amount(20, [])
    with pytest.raises(InvalidRequest) as error:
        check_amount(21, [])
    assert error.value.message == (
        "Too many strict tools (21). The maximum number of strict tools supported is 20. "
        "Try reducing the number of tools marked as strict."
    )


def test_optional_parameters_of_all_schemas_together_are_24_at_most() -> None:
    def schema(count: int) -> dict[str, Any]:
        inner = closed({f"p{n}": TEXT for n in range(count)} | {"must": TEXT}, "must")
        return closed({"a": {"type": "array", "items": inner}}, "a")

    check_amount(2, [schema(20), schema(4)])
    with pytest.raises(InvalidRequest) as error:
        check_amount(2, [schema(20), schema(5)])
    assert error.value.message.startswith("Schemas contains too many optional parameters (25), ")
    assert error.value.message.endswith("(limit: 24).")


def test_parameters_with_several_types_are_16_at_most() -> None:
    names = [f"p{n}" for n in range(17)]
    unions: list[Any] = [{"type": ["string", "null"]}, {"anyOf": [TEXT, {"type": "null"}]}]
    sixteen = closed({name: unions[n % 2] for n, name in enumerate(names[:16])}, *names[:16])
    check_amount(1, [sixteen])
    more = closed({name: unions[n % 2] for n, name in enumerate(names)}, *names)
    with pytest.raises(InvalidRequest) as error:
        check_amount(1, [more])
    assert "(17 parameters with type arrays or anyOf)" in error.value.message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, None),
        ({"tools": [{"name": "a", "input_schema": {"type": "object"}}]}, None),
        ({"tools": [{"name": "a", "input_schema": {"type": "object"}, "strict": True}]},
            "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be"),
        ({"tools": [{"name": f"t{n}", "input_schema": closed({}), "strict": True}
            for n in range(21)]}, "Too many strict tools (21)."),
    ],
)  # fmt: skip
def test_strict_tools_and_formats_of_a_request_are_looked_at_and_other_tools_are_not(
    fields: dict[str, Any], message: str | None
) -> None:
    messages = [{"role": "user", "content": "x"}]
    request = PromptRequest.parse({"model": "m", "messages": messages, **fields})
    if message is None:
        check_strictly(request)
        return
    with pytest.raises(InvalidRequest) as error:
        check_strictly(request)
    assert error.value.message.startswith(message)
