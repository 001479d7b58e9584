"""Rules about JSON Schemas: what draft 2020-12 allows each keyword to hold, as one table.

A schema is looked at without recursion, without running a pattern of the client's and
without following a `$ref`: linear in its size, whatever it says. (The `jsonschema` library,
which the tests compare this with, takes 8 ms for a tool of Claude Code's.) Keywords that
the draft does not know are allowed. Source: json-schema.org/draft/2020-12/schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from pydantic import JsonValue

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.wire import JsonObject

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def check_input_schema(path: str, schema: JsonObject) -> None:
    """`schema` describes the input of a tool, which is an object. Raises InvalidRequest."""
    if "type" not in schema:
        raise InvalidRequest(f"{path}.type", "Field required")
    if schema["type"] != "object":
        raise InvalidRequest(f"{path}.type", "Input should be 'object'")
    if not schema.keys().isdisjoint({"oneOf", "allOf", "anyOf"}):
        why = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        raise InvalidRequest(path, why)
    check_schema(path, schema)


def check_schema(path: str, schema: JsonObject) -> None:
    """`schema` is a JSON Schema of draft 2020-12 and not too large. Raises InvalidRequest."""
    if (size := len(json.dumps(schema))) > LIMITS.schema_chars:
        why = f"JSON schema is too large: {size} characters > {LIMITS.schema_chars} maximum"
        raise InvalidRequest(path, why)
    for place in _misfits(schema):
        why = "JSON schema is invalid. It must match JSON Schema draft 2020-12."
        raise InvalidRequest(path, f"{why} See {place[:200]}.")


def _misfits(schema: JsonValue) -> Iterator[str]:
    """The places in `schema` that hold what their keyword cannot."""
    waiting: list[tuple[str, JsonValue]] = [("", schema)]
    while waiting:
        place, here = waiting.pop()
        if isinstance(here, bool):
            continue
        if not isinstance(here, dict):
            yield place[1:]
            continue
        for keyword, value in here.items():
            at = f"{place}.{keyword}"
            if not SHAPES.get(keyword, _anything)(value):
                yield at[1:]
            elif parts := PARTS.get(keyword):
                waiting += [(f"{at}{step}", part) for step, part in parts(value)]


def _anything(value: JsonValue) -> bool:
    return True


def _text(value: JsonValue) -> bool:
    return isinstance(value, str)


def _flag(value: JsonValue) -> bool:
    return isinstance(value, bool)


def _list(value: JsonValue) -> bool:
    return isinstance(value, list)


def _number(value: JsonValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _positive(value: JsonValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _count(value: JsonValue) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and value >= 0
        and value == int(value)
    )


def _object(value: JsonValue) -> bool:
    return isinstance(value, dict)


def _schemas(value: JsonValue) -> bool:
    return isinstance(value, list) and bool(value)


def _names(value: JsonValue) -> bool:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return False
    return len(set(map(str, value))) == len(value)


def _names_by_name(value: JsonValue) -> bool:
    return isinstance(value, dict) and all(map(_names, value.values()))


def _flags_by_name(value: JsonValue) -> bool:
    return isinstance(value, dict) and all(map(_flag, value.values()))


def _types(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return isinstance(value, list) and value != [] and _names(value) and TYPES.issuperset(value)


def _anchor(value: JsonValue) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z_][-A-Za-z0-9._]*", value) is not None


def _id(value: JsonValue) -> bool:
    return isinstance(value, str) and "#" not in value.removesuffix("#")


SHAPES: Final[dict[str, Callable[[JsonValue], bool]]] = {
    # core
    **dict.fromkeys(("$schema", "$ref", "$dynamicRef", "$recursiveRef", "$comment"), _text),
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$recursiveAnchor"), _anchor),
    **dict.fromkeys(("$defs", "definitions"), _object),
    "$id": _id,
    "$vocabulary": _flags_by_name,
    # applicators
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _schemas),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _object),
    "dependencies": _object,
    # validation
    **dict.fromkeys(("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"), _number),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems"), _count),
    **dict.fromkeys(("maxContains", "minContains", "maxProperties", "minProperties"), _count),
    "dependentRequired": _names_by_name,
    "enum": _list,
    "multipleOf": _positive,
    "pattern": _text,
    "required": _names,
    "type": _types,
    "uniqueItems": _flag,
    # annotations
    **dict.fromkeys(("title", "description", "format"), _text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _text),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), _flag),
    "examples": _list,
}
"""What the value of a keyword must be; keywords whose value is a schema are in `PARTS`."""

Parts = Iterator[tuple[str, JsonValue]]


def _itself(value: JsonValue) -> Parts:
    yield "", value


def _items(value: JsonValue) -> Parts:
    assert isinstance(value, list)
    yield from ((f".{index}", part) for index, part in enumerate(value))


def _values(value: JsonValue) -> Parts:
    assert isinstance(value, dict)
    yield from ((f".{name}", part) for name, part in value.items())


def _values_but_lists(value: JsonValue) -> Parts:
    """Of the older `dependencies`: names of properties are no schema."""
    yield from ((step, part) for step, part in _values(value) if not _names(part))


PARTS: Final[dict[str, Callable[[JsonValue], Parts]]] = {
    **dict.fromkeys(("items", "contains", "additionalProperties", "propertyNames"), _itself),
    **dict.fromkeys(("if", "then", "else", "not", "contentSchema"), _itself),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), _itself),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _items),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), _values),
    **dict.fromkeys(("$defs", "definitions"), _values),
    "dependencies": _values_but_lists,
}
"""The schemas inside the value of a keyword, with the step to each."""
