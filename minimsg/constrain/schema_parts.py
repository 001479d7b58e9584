"""Where JSON Schema has schemas inside schemas, and what its references lead to.

Knows the keywords of draft 2020-12, not what they mean for a grammar (`schema.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote

from pydantic import JsonValue

from minimsg.protocol.wire import JsonObject

ONE: Final = ("items", "additionalProperties", "contains", "propertyNames", "if", "then", "else",
    "not", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def parts_of(schema: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """The schemas right inside `schema`, each with the step that leads there."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ONE:
            yield keyword, value
        elif keyword in MANY and isinstance(value, list):
            yield from ((f"{keyword}.{index}", part) for index, part in enumerate(value))
        elif keyword in NAMED and isinstance(value, dict):
            yield from ((f"{keyword}.{name}", part) for name, part in value.items())


def at(reference: str, root: JsonObject) -> JsonValue:
    """The schema at a local `reference`, such as `#/$defs/Name`; None if there is none."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    found: JsonValue = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def references(schema: JsonValue) -> Iterator[str]:
    """All that `schema` and the schemas inside it refer to."""
    if isinstance(schema, dict) and "$ref" in schema:
        yield str(schema["$ref"])
    for _, part in parts_of(schema):
        yield from references(part)


def mapped(
    keyword: str, value: JsonValue, change: Callable[[str, JsonValue], JsonValue]
) -> JsonValue:
    """The value of a keyword, with the schemas inside it changed."""
    if keyword in ONE:
        return change(keyword, value)
    if keyword in MANY and isinstance(value, list):
        return [change(keyword, each) for each in value]
    if keyword in NAMED and isinstance(value, dict):
        return {name: change(keyword, each) for name, each in value.items()}
    return value
