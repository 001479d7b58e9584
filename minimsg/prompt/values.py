"""The values of a request: every text of it that a template is given on its own.

A value is the text of a block, a string of a tool or of a call, or a key of their JSON.
`map_values` passes each through a function, in the order of the template's messages and
then of its tools. What we added has no path and is no value. Knows nothing of what a
value is changed for: `sources.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, NamedTuple

from pydantic import JsonValue

from minimsg.prompt.conversation import Call, Entry, Part
from minimsg.prompt.reading import Given
from minimsg.prompt.tools import Function
from minimsg.protocol.wire import JsonObject


class Kind(IntEnum):
    """What a value is. The higher, the likelier a template compares it instead of showing it."""

    TEXT = 0
    WORD = 1  # a name, a description, a string of a call
    CALL_KEY = 2
    DETAIL = 3  # any other string of a schema, such as a type
    SCHEMA_KEY = 4


@dataclass(frozen=True, slots=True)
class Value:
    """A text and where the client wrote it; for a key, the path of the object that has it."""

    path: str
    text: str
    kind: Kind


Change = Callable[[Value], str]


class Kinds(NamedTuple):
    """Of what kind keys and strings of some JSON are."""

    key: Kind
    string: Kind


IN_CALL: Final = Kinds(Kind.CALL_KEY, Kind.WORD)
IN_SCHEMA: Final = Kinds(Kind.SCHEMA_KEY, Kind.DETAIL)


def map_values(given: Given, change: Change, blocks: Collection[str] | None = None) -> Given:
    """`given` with each value changed; with `blocks`, only where one of these blocks stands."""

    def is_meant(*items: Part | Call | Function) -> bool:
        return blocks is None or any(block_of(item.path) in blocks for item in items)

    return replace(
        given,
        entries=[
            _entry(entry, change)
            if is_meant(*entry.thoughts, *entry.texts, *entry.calls)
            else entry
            for entry in given.entries
        ],
        functions=[
            _function(function, change) if is_meant(function) else function
            for function in given.functions
        ],
    )


def block_of(path: str) -> str:
    """The block or tool that the value at `path` belongs to."""
    steps = path.split(".")
    return ".".join(steps[:4] if steps[0] == "messages" else steps[:2])


def _entry(entry: Entry, change: Change) -> Entry:
    return replace(
        entry,
        thoughts=_parts(entry.thoughts, change),
        texts=_parts(entry.texts, change),
        calls=[_call(call, change) for call in entry.calls],
    )


def _parts(parts: Sequence[Part], change: Change) -> list[Part]:
    return [
        replace(part, text=change(Value(part.path, part.text, Kind.TEXT))) if part.path else part
        for part in parts
    ]


def _call(call: Call, change: Change) -> Call:
    name = change(Value(f"{call.path}.name", call.name, Kind.WORD))
    return replace(
        call, name=name, input=_object(f"{call.path}.input", call.input, IN_CALL, change)
    )


def _function(function: Function, change: Change) -> Function:
    name = change(Value(f"{function.path}.name", function.name, Kind.WORD))
    description = function.description
    if description is not None:
        description = change(Value(f"{function.path}.description", description, Kind.WORD))
    path = f"{function.path}.input_schema"
    parameters = _object(path, function.parameters, IN_SCHEMA, change)
    return replace(function, name=name, description=description, parameters=parameters)


def _object(path: str, value: JsonObject, kinds: Kinds, change: Change) -> JsonObject:
    changed: JsonObject = {}
    for key, item in value.items():
        shown = change(Value(path, key, kinds.key))
        inside = f"{path}.{key}"
        is_told = key == "description" and isinstance(item, str)
        changed[shown] = _json(inside, item, IN_CALL if is_told else kinds, change)
    return changed


def _json(path: str, value: JsonValue, kinds: Kinds, change: Change) -> JsonValue:
    if isinstance(value, str):
        return change(Value(path, value, kinds.string))
    if isinstance(value, dict):
        return _object(path, value, kinds, change)
    if isinstance(value, list):
        return [_json(f"{path}.{n}", item, kinds, change) for n, item in enumerate(value)]
    return value
