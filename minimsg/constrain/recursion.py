"""Schemas that refer to themselves, followed so many times and no further.

A model that goes one level deeper each time never comes back, and where JSON ends to nest
(`lark.py`) a schema that still wants a list leaves nothing that may come. So each definition
becomes one for each level, of which the last refers to nothing; the engine leaves out what
can then not be. Knows schemas as data, no grammar.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from minimsg.constrain.schema_parts import at, mapped, references
from minimsg.protocol.wire import JsonObject

LEVELS: Final = 8
DEFINITIONS: Final = frozenset({"$defs", "definitions"})


class Unsatisfiable(ValueError):
    """A schema that nothing can be like."""


def recursive_references(schema: JsonObject) -> list[str]:
    """All references in `schema` that lead back to themselves, in their order."""
    leads: dict[str, set[str]] = {}
    for reference in references(schema):
        if reference not in leads:
            leads[reference] = set(references(at(reference, schema)))
    return [start for start in leads if _leads_back(start, leads)]


def unrolled(schema: JsonObject) -> JsonObject:
    """`schema` without recursion, and no wider. Raises Unsatisfiable if it has no end then."""
    recursive = recursive_references(schema)
    if not recursive:
        return schema
    defined = dict[str, JsonValue]()
    here = dict.fromkeys(recursive, "")  # the definition that stands for each; "": nothing can
    for level in range(LEVELS):
        above = dict(here)
        for index, reference in enumerate(recursive):
            part = _leading(_target(reference, schema), here)
            name = f"recursion-{index}-{level}"
            above[reference] = "" if is_impossible(part) else name
            defined[name] = part
        here = above
    whole = _leading(schema, here)
    if not isinstance(whole, dict):
        raise Unsatisfiable("Unsatisfiable schema: it needs itself inside itself without end")
    mine = whole.get("$defs")
    possible = {name: part for name, part in defined.items() if not is_impossible(part)}
    return {**whole, "$defs": {**(mine if isinstance(mine, dict) else {}), **possible}}


def is_impossible(part: JsonValue) -> bool:
    """Whether nothing can be as `part` says, as far as its outermost keywords tell."""
    if not isinstance(part, dict):
        return part is False
    properties, required = part.get("properties"), part.get("required")
    if isinstance(properties, dict) and isinstance(required, list):
        needed = [properties.get(str(name)) for name in required]
    else:
        needed = []
    if part.get("minItems") and "prefixItems" not in part:
        needed.append(part.get("items"))
    if any(map(is_impossible, [*needed, *_choices(part, "allOf")])):
        return True
    either = _choices(part, "anyOf") or _choices(part, "oneOf")
    return bool(either) and all(map(is_impossible, either))


def _choices(part: JsonObject, keyword: str) -> list[JsonValue]:
    choices = part.get(keyword)
    return choices if isinstance(choices, list) else []


def _target(reference: str, schema: JsonObject) -> JsonValue:
    """What is referred to, without definitions of its own."""
    target = at(reference, schema)
    if not isinstance(target, dict):
        return target
    return {key: part for key, part in target.items() if key not in DEFINITIONS}


def _leads_back(start: str, leads: dict[str, set[str]]) -> bool:
    seen, waiting = set[str](), [start]
    while waiting:
        reached = leads.get(waiting.pop(), set()) - seen
        seen |= reached
        waiting += reached
    return start in seen


def _leading(part: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """`part` with its recursive references leading to the definitions `names`."""
    if not isinstance(part, dict):
        return part
    name = names.get(str(part.get("$ref")))
    if name == "":
        return False
    if name is not None:
        part = {**part, "$ref": f"#/$defs/{name}"}

    def inside(keyword: str, each: JsonValue) -> JsonValue:
        return _leading(each, names)

    ready = {keyword: mapped(keyword, value, inside) for keyword, value in part.items()}
    return False if is_impossible(ready) else ready
