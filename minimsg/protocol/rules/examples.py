"""Whether an example fits the schema of its tool, as far as that can be told cheaply.

What is said to misfit does misfit; what is said to fit may break a keyword that is not
looked at: patterns, which are never run, `not`, `if`, and the rarer ones. The work is
bounded: a schema that refers to itself, or branches without end, counts as fitting.
Used by `tools.py`. Source: JSON Schema draft 2020-12, validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeGuard
from urllib.parse import unquote

from pydantic import JsonValue

from minimsg.protocol.wire import JsonObject

MAX_DEPTH: Final = 60  # schemas that an example is held against on the way to one of its parts
MAX_STEPS: Final = 20_000  # schemas and enumerated values that one example is held against


def misfit(schema: JsonObject, example: JsonValue) -> str | None:
    """The place and keyword at which `example` certainly breaks `schema`, or None."""
    try:
        return next(_Comparison(schema).misfits(schema, example, "", 0), None)
    except _TooMuchWork:
        return None


class _TooMuchWork(Exception):
    """More steps than `MAX_STEPS`."""


@dataclass
class _Comparison:
    """One example against one schema; counts its steps."""

    root: JsonObject
    steps: int = 0

    def misfits(self, schema: JsonValue, value: JsonValue, place: str, depth: int) -> Iterator[str]:
        """Where `value`, which stands at `place`, certainly breaks `schema`."""
        if schema is False:
            yield f"{place or '.'} is not allowed"
        is_elsewhere = isinstance(schema, dict) and "$id" in schema and schema is not self.root
        if not isinstance(schema, dict) or is_elsewhere or depth > MAX_DEPTH:
            return
        self._step(1 + len(_list(schema.get("enum"))) + len(_list(schema.get("required"))))
        for keyword, breaks in ASSERTIONS.items():
            if keyword in schema and breaks(schema[keyword], value):
                yield f"{place or '.'} breaks {keyword}"
        yield from self._parts(schema, value, place, depth + 1)
        yield from self._branches(schema, value, place, depth + 1)

    def _parts(self, schema: JsonObject, value: JsonValue, place: str, depth: int) -> Iterator[str]:
        for step, part, part_schema in _parts_of(schema, value):
            yield from self.misfits(part_schema, part, f"{place}.{step}".lstrip("."), depth)

    def _branches(
        self, schema: JsonObject, value: JsonValue, place: str, depth: int
    ) -> Iterator[str]:
        if isinstance(reference := schema.get("$ref"), str):
            yield from self.misfits(_resolved(self.root, reference), value, place, depth)
        for branch in _list(schema.get("allOf")):
            yield from self.misfits(branch, value, place, depth)
        for keyword in ("anyOf", "oneOf"):
            branches = _list(schema.get(keyword))
            if branches and all(
                any(True for _ in self.misfits(branch, value, place, depth)) for branch in branches
            ):
                yield f"{place or '.'} breaks {keyword}"

    def _step(self, number: int) -> None:
        self.steps += number
        if self.steps > MAX_STEPS:
            raise _TooMuchWork


def _parts_of(schema: JsonObject, value: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """The members of `value` with the schema that each has to fit."""
    if isinstance(value, dict):
        named = _dict(schema.get("properties"))
        others = schema.get("additionalProperties", True)
        for name, part in value.items():
            if name in named:
                yield name, part, named[name]
            elif not schema.get("patternProperties"):
                yield name, part, others
    elif isinstance(value, list):
        first = _list(schema.get("prefixItems"))
        for index, part in enumerate(value):
            part_schema = first[index] if index < len(first) else schema.get("items", True)
            yield str(index), part, part_schema


def _resolved(root: JsonObject, reference: str) -> JsonValue:
    """The schema at a JSON pointer into `root`; what lies elsewhere is not looked at."""
    if reference != "#" and not reference.startswith("#/"):
        return True
    here: JsonValue = root
    for step in unquote(reference).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(here, dict) or name not in here:
            return True
        here = here[name]
    return here


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _dict(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _is_number(value: JsonValue) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


IS_TYPE: Final[dict[JsonValue, Callable[[JsonValue], bool]]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value % 1 == 0,
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def _is_none_of_types(types: JsonValue, value: JsonValue) -> bool:
    return not any(IS_TYPE[type](value) for type in _list(types) or [types])


def _lacks(names: JsonValue, value: JsonValue) -> bool:
    return isinstance(value, dict) and any(name not in value for name in _list(names))


ASSERTIONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "type": _is_none_of_types,
    "enum": lambda allowed, value: value not in allowed,
    "const": lambda allowed, value: value != allowed,
    "required": _lacks,
    "minimum": lambda bound, value: _is_number(value) and value < bound,
    "maximum": lambda bound, value: _is_number(value) and value > bound,
    "exclusiveMinimum": lambda bound, value: _is_number(value) and value <= bound,
    "exclusiveMaximum": lambda bound, value: _is_number(value) and value >= bound,
    "minLength": lambda bound, value: isinstance(value, str) and len(value) < bound,
    "maxLength": lambda bound, value: isinstance(value, str) and len(value) > bound,
    "minItems": lambda bound, value: isinstance(value, list) and len(value) < bound,
    "maxItems": lambda bound, value: isinstance(value, list) and len(value) > bound,
    "minProperties": lambda bound, value: isinstance(value, dict) and len(value) < bound,
    "maxProperties": lambda bound, value: isinstance(value, dict) and len(value) > bound,
}
"""Keyword -> whether a value breaks it; the schema itself is valid (`schemas.py`)."""
