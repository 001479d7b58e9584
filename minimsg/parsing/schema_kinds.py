"""Which kinds of JSON value a schema takes, and text as a value of one of them.

Formats that write parameters as plain text (`qwen_xml.py`) leave open whether `12` is a
number: the tool's schema says. Knows as much of JSON Schema as that takes; validating
is not its business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from minimsg.parsing.json_text import read_json

Kinds = frozenset[str]
Schema = Mapping[str, JsonValue]

ALL_KINDS: Final[Kinds] = frozenset(
    {"string", "integer", "number", "boolean", "null", "object", "array"}
)
STRING: Final[Kinds] = frozenset({"string"})
FIRST_CHARACTERS: Final = {
    "{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null",
}  # fmt: skip


def parameter_kinds(input_schema: Schema, parameter: str) -> Kinds:
    """What the schema of a tool takes as `parameter`; a string if it does not know it."""
    properties = input_schema.get("properties")
    schema = properties.get(parameter) if isinstance(properties, dict) else None
    return STRING if schema is None else _Reader(input_schema).kinds(schema)


def as_json(text: str, kinds: Kinds) -> str:
    """`text` as a JSON value of one of `kinds`, a string only if it is no other; else a string."""
    value = None if kinds == STRING else read_json(text)
    if value is not None and _kind(value) in kinds - STRING:
        return value
    return json.dumps(text, ensure_ascii=False)


class _Reader:
    """Looks each reference up once, so that recursive schemas end and large ones are quick."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._known: dict[str, Kinds] = {}

    def kinds(self, schema: JsonValue) -> Kinds:
        """What `schema` takes, at most."""
        if not isinstance(schema, dict):
            return ALL_KINDS
        kinds = _said(schema)
        if isinstance(reference := schema.get("$ref"), str):
            kinds &= self._referenced(reference)
        for word in ("anyOf", "oneOf"):
            if isinstance(choices := schema.get(word), list):
                kinds &= frozenset().union(*map(self.kinds, choices))
        return kinds

    def _referenced(self, reference: str) -> Kinds:
        """What the schema at `reference`, such as `#/$defs/Name`, takes."""
        if reference not in self._known:
            self._known[reference] = frozenset()  # of itself it takes nothing more
            self._known[reference] = self.kinds(_at(reference, self._root))
        return self._known[reference]


def _at(reference: str, root: Schema) -> JsonValue:
    found: JsonValue = dict(root)
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _said(schema: Schema) -> Kinds:
    """What `type`, `enum` and `const` take."""
    said = schema.get("type", list(ALL_KINDS))
    kinds = frozenset(str(kind) for kind in (said if isinstance(said, list) else [said]))
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        kinds = _widened(kinds) & _widened(frozenset(_kind(json.dumps(v)) for v in values))
    return _widened(kinds)


def _kind(value: str) -> str:
    """The kind of a JSON text."""
    is_whole = not set(value) & set(".eE")
    return FIRST_CHARACTERS.get(value[0], "integer" if is_whole else "number")


def _widened(kinds: Kinds) -> Kinds:
    """1 is a number as well, and 1.0 an integer."""
    return kinds | {"integer", "number"} if kinds & {"integer", "number"} else kinds
