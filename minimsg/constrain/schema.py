"""A client's JSON Schema made ready for the grammar engine, never wider than it was.

- JSON has no white space that could go on for ever. No character of a string is written as
  `\\uXXXX` but those that have to be, which are no half of a pair.
- The properties of an object come in one order: the required ones as the schema lists
  them, then the others.
- An object that lists its properties, and says nothing of others, has no others: small
  models do not stop inventing them.
- What refers to itself is followed a bounded number of times (`recursion.py`).
- `uniqueItems: false` says nothing and goes.

Knows the schema as data; what the engine refuses is in `refusal.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import Final

from pydantic import JsonValue

from minimsg.constrain.lark import SPACE
from minimsg.constrain.recursion import Unsatisfiable, unrolled
from minimsg.constrain.schema_parts import mapped
from minimsg.protocol.wire import JsonObject

# What may say more of the same object from another place.
ELSEWHERE: Final = frozenset({
    "additionalProperties", "patternProperties", "unevaluatedProperties", "minProperties",
    "maxProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas", "not",
})  # fmt: skip

EXACT: Final = 2.0**53  # floats beyond are written in digits that may be another whole number


class Spacing(Enum):
    """The white space of the JSON that is written."""

    NONE = auto()
    ONE = auto()  # after each comma and colon, as in the prompts that models are trained on
    SOME = auto()  # wherever JSON allows, up to a bound


SPACINGS: Final[Mapping[Spacing, JsonObject]] = {
    Spacing.NONE: {"whitespace_flexible": False},
    Spacing.ONE: {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    Spacing.SOME: {"whitespace_pattern": SPACE},
}


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a schema is taken."""

    is_closed: bool = True  # objects have no other properties than those listed
    is_lenient: bool = False  # what cannot be enforced is left out, not refused
    spacing: Spacing = Spacing.NONE


def made_ready(schema: JsonObject, terms: Terms) -> JsonObject:
    """`schema` as the engine takes it."""
    ready = _rewritten(schema, may_close=terms.is_closed)
    assert isinstance(ready, dict)
    ready = unrolled(ready)
    style: JsonObject = {"json_allowed_escapes": 'nrbtf\\"u', "lenient": terms.is_lenient}
    return {**ready, "x-guidance": {**style, **SPACINGS[terms.spacing]}}


def _rewritten(schema: JsonValue, *, may_close: bool) -> JsonValue:
    if not isinstance(schema, dict):
        return schema
    for value in _values(schema):
        if isinstance(value, float) and abs(value) > EXACT and Decimal(repr(value)) != value:
            raise Unsatisfiable(f"no reader takes the digits of {value} for that number")
    inside = may_close and not ("properties" in schema and ELSEWHERE & schema.keys())

    def part(keyword: str, value: JsonValue) -> JsonValue:
        is_joined = keyword == "allOf" or (keyword in ("anyOf", "oneOf") and not inside)
        return _rewritten(value, may_close=may_close and not is_joined)

    ready = {keyword: mapped(keyword, value, part) for keyword, value in schema.items()}
    if ready.get("uniqueItems") is False:
        del ready["uniqueItems"]
    return _ordered(ready, is_closed=may_close and not ELSEWHERE & schema.keys())


def _values(schema: JsonObject) -> list[JsonValue]:
    """All that `const` and `enum` say."""
    choices = schema.get("enum")
    return [schema.get("const"), *(choices if isinstance(choices, list) else [])]


def _ordered(schema: dict[str, JsonValue], *, is_closed: bool) -> JsonObject:
    """An object's schema with the required properties first; any other as it is."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return schema
    needed = [str(name) for name in required] if isinstance(required, list) else []
    first = {name: each for name, each in properties.items() if name in needed}
    if schema.get("additionalProperties", True) is True and "patternProperties" not in schema:
        first |= {name: True for name in needed if name not in properties}
    schema["properties"] = {**first, **properties}
    if is_closed:
        schema["additionalProperties"] = False
    return schema
