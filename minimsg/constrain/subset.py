"""The part of JSON Schema that the hosted API enforces, and how much of it at once.

For the strict profile: what is refused there is refused here, in its words as public error
reports quote them, whatever this machine could do. Looks at schemas that are valid ones
(`protocol/rules/schemas.py`). What the grammar engine here enforces is another matter
(`refusal.py`). Source: Messages API reference, structured outputs, JSON Schema limitations.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue

from minimsg.constrain.recursion import recursive_references
from minimsg.constrain.schema_parts import at, parts_of
from minimsg.errors import InvalidRequest
from minimsg.protocol.wire import JsonObject

MAX_STRICT_TOOLS: Final = 20
MAX_OPTIONAL: Final = 24
MAX_UNIONS: Final = 16
MAX_COUNT: Final = 1_000  # of repetitions in a pattern; "large" in the reference
FORMATS: Final = frozenset({
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
})  # fmt: skip
NUMERIC: Final = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf")
UNSUPPORTED: Final[Mapping[str, tuple[str, ...]]] = {
    "object": ("dependencies", "dependentRequired", "dependentSchemas", "maxProperties",
        "minProperties", "patternProperties", "propertyNames", "unevaluatedProperties"),
    "array": ("additionalItems", "contains", "maxContains", "maxItems", "minContains",
        "prefixItems", "unevaluatedItems", "uniqueItems"),
    "string": ("contentEncoding", "contentMediaType", "contentSchema", "maxLength", "minLength"),
    "number": NUMERIC,
    "integer": NUMERIC,
}  # fmt: skip
ANY_TYPE: Final = ("oneOf", "not", "if", "then", "else", "$dynamicRef", "$recursiveRef")
CHOICES: Final = ("anyOf", "allOf")
TYPE_IS_SAID_BY: Final = frozenset({"type", "$ref", "enum", "const", *CHOICES})
HARD_PATTERN: Final[tuple[tuple[str, str], ...]] = (
    (r"\\[1-9k]", "backreferences"),
    (r"\(\?<?[=!]", "lookarounds"),
    (r"\\[bB]", "word boundaries"),
)
PATTERN_PIECES: Final = re.compile(r"\\.|\(\?<?[=!]|\{\d+(?:,\d*)?\}", re.DOTALL)


def check_subset(path: str, schema: JsonObject) -> None:
    """`schema`, which stands at `path`, is in the part that is enforced. Raises InvalidRequest."""
    for part in parts_within(schema):
        if problem := next(_problems(part, schema), None):
            raise InvalidRequest(path, problem)
    for reference in recursive_references(schema)[:1]:
        why = f"Recursive schemas are not supported: '{reference}' refers to itself"
        raise InvalidRequest(path, why)


def check_amount(num_strict_tools: int, schemas: list[JsonObject]) -> None:
    """All that one request wants enforced is not too much. Raises InvalidRequest."""
    if num_strict_tools > MAX_STRICT_TOOLS:
        raise InvalidRequest(
            "",
            f"Too many strict tools ({num_strict_tools}). The maximum number of strict tools "
            f"supported is {MAX_STRICT_TOOLS}. Try reducing the number of tools marked as strict.",
        )
    optional = sum(map(_num_optional, schemas))
    if optional > MAX_OPTIONAL:
        raise InvalidRequest(
            "",
            f"Schemas contains too many optional parameters ({optional}), which would make grammar "
            "compilation inefficient. Reduce the number of optional parameters in your tool "
            f"schemas (limit: {MAX_OPTIONAL}).",
        )
    unions = sum(map(_num_unions, schemas))
    if unions > MAX_UNIONS:
        raise InvalidRequest(
            "",
            f"Schemas contains too many parameters with union types ({unions} parameters with type "
            "arrays or anyOf). This causes exponential compilation cost. Reduce the number of "
            f"nullable or union-typed parameters (limit: {MAX_UNIONS} parameters with unions).",
        )


def parts_within(schema: JsonValue) -> Iterator[JsonValue]:
    """`schema` and all schemas inside it, outermost first."""
    waiting = deque([schema])
    while waiting:
        here = waiting.popleft()
        yield here
        waiting += [part for _, part in parts_of(here)]


def _problems(part: JsonValue, root: JsonObject) -> Iterator[str]:
    if not isinstance(part, dict):
        if part is not False:  # `additionalProperties: false`
            yield "Invalid schema: Schema type is missing"
        return
    yield from (
        f"Schema type '{keyword}' is not supported" for keyword in ANY_TYPE if keyword in part
    )
    if not TYPE_IS_SAID_BY & part.keys():
        yield "Invalid schema: Schema type is missing"
    yield from _reference_problems(part, root)
    yield from _value_problems(part)
    for type in _types(part):
        yield from BY_TYPE[type](part) if type in BY_TYPE else ()
        yield from _type_problems(type, part)


def _reference_problems(part: JsonObject, root: JsonObject) -> Iterator[str]:
    if "$ref" in part:
        reference = str(part["$ref"])
        if not reference.startswith("#/") or at(reference, root) is None:
            yield f"'$ref' to '{reference[:100]}' is not supported: there is no such definition"
    all_of = part.get("allOf")
    if isinstance(all_of, list) and any(
        "$ref" in each for each in all_of if isinstance(each, dict)
    ):
        yield "'allOf' with '$ref' is not supported"


def _value_problems(part: JsonObject) -> Iterator[str]:
    values = part.get("enum")
    if isinstance(values, list) and any(isinstance(value, (dict, list)) for value in values):
        yield "'enum' values other than strings, numbers, booleans and null are not supported"


def _type_problems(type: str, part: JsonObject) -> Iterator[str]:
    """Keywords of a type that nothing enforces."""
    words = [word for word in UNSUPPORTED.get(type, ()) if word in part]
    if len(words) > 1:
        yield f"For '{type}' type, properties {', '.join(words)} are not supported"
    elif words:
        yield f"For '{type}' type, property '{words[0]}' is not supported"


def _object_problems(part: JsonObject) -> Iterator[str]:
    others = part.get("additionalProperties")
    if others is None:
        yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
    elif others is not False:
        seen = "true" if others is True else "object"
        yield (
            f"For 'object' type, 'additionalProperties: {seen}' is not supported. "
            "Please set 'additionalProperties' to false"
        )


def _array_problems(part: JsonObject) -> Iterator[str]:
    if (least := part.get("minItems", 0)) not in (0, 1):
        bounds = f"[{least}, {part.get('maxItems', '∞')}]"
        why = "'minItems' values other than 0 or 1 are not supported"
        yield f"For 'array' type, {why} (got: {bounds})"


def _string_problems(part: JsonObject) -> Iterator[str]:
    if "format" in part and part["format"] not in FORMATS:
        yield f"For 'string' type, format '{part['format']!s:.50}' is not supported"
    for piece in PATTERN_PIECES.findall(str(part.get("pattern", ""))):
        for hard, name in HARD_PATTERN:
            if re.match(hard, piece):
                yield f"For 'string' type, 'pattern' with {name} is not supported"
        if any(int(count) > MAX_COUNT for count in re.findall(r"\d+", piece) if piece[0] == "{"):
            yield f"For 'string' type, 'pattern' with counts over {MAX_COUNT} is not supported"


BY_TYPE: Final = {
    "object": _object_problems,
    "array": _array_problems,
    "string": _string_problems,
}


def _types(part: JsonObject) -> list[str]:
    said = part.get("type", [])
    return [str(type) for type in (said if isinstance(said, list) else [said])]


def _num_optional(schema: JsonObject) -> int:
    """Properties of any object inside that may be left out."""
    count = 0
    for properties, part in _properties_within(schema):
        required = part.get("required")
        count += len(properties.keys() - set(required if isinstance(required, list) else []))
    return count


def _num_unions(schema: JsonObject) -> int:
    """Properties of any object inside that have several types."""
    return sum(
        isinstance(value, dict) and ("anyOf" in value or isinstance(value.get("type"), list))
        for properties, _ in _properties_within(schema)
        for value in properties.values()
    )


def _properties_within(schema: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    for part in parts_within(schema):
        if isinstance(part, dict) and isinstance(properties := part.get("properties"), dict):
            yield properties, part
