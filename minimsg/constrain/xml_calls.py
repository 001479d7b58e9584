"""Calls with a tag for each parameter, as grammars.

    <function=now>
    <parameter=zone>
    UTC
    </parameter>
    </function>

Every parameter that the schema lists is a rule, the required ones first. What may stand in
one is in `xml_values.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, Final

from pydantic import JsonValue

from minimsg.constrain import lark
from minimsg.constrain.reading import Call
from minimsg.constrain.xml_values import Unwritable, ValueWriter, any_of_kind
from minimsg.parsing.qwen_xml import FUNCTION
from minimsg.parsing.xml_value import PARAMETER
from minimsg.protocol.wire import JsonObject

MAX_KEY_CHARS: Final = 256  # what the parser reads
ANY_PARAMETERS: Final = f'("{PARAMETER}" /[^<>\\n]{{1,{MAX_KEY_CHARS}}}/ ">" {lark.RAW} WS?)*'
# What an object's schema may say beside its properties, as none of it ties them together.
KNOWN: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "title", "description", "default",
    "examples", "$schema", "$id", "$comment", "$defs", "definitions", "x-guidance",
})  # fmt: skip


class XmlBody:
    """The tag of the function and what is in it; a `Body` of `calls.py`."""

    is_json: ClassVar[bool] = False

    def rules(self, name: str, tool: str, schema: JsonObject | None, *, is_held: bool) -> str:
        if schema is None:
            return _function(name, tool, ANY_PARAMETERS, is_held=is_held)
        writer = ValueWriter(name, schema)
        if not writer.is_lenient:
            _check(schema)
        parameters = _parameters(schema, writer.value, is_held=is_held)
        return _function(name, tool, parameters, is_held=is_held) + "".join(writer.rules)

    def loose_rules(self, name: str, tools: Mapping[str, JsonObject | None]) -> str:
        if not tools:
            return _function(name, "", ANY_PARAMETERS, is_held=True)
        rules = []
        for index, (tool, schema) in enumerate(tools.items()):
            parameters = ANY_PARAMETERS
            if schema is not None:
                parameters = _parameters(schema, partial(any_of_kind, schema), is_held=True)
            rules.append(_function(f"{name}_{index}", tool, parameters, is_held=True))
        choices = " | ".join(f"{name}_{index}" for index in range(len(rules)))
        return f"{name}: {choices}\n{''.join(rules)}"

    def beginning(self, call: Call) -> str | None:
        is_json = "{" in call.head
        return None if is_json else f"{FUNCTION}{call.name}>{call.rest}"


def _function(name: str, tool: str, parameters: str, *, is_held: bool) -> str:
    """The rule of a call of `tool`, or of any tool if it has no name."""
    gap, end = (lark.WS, '"\\n"?') if is_held else ('"\\n"', "")
    head = lark.literal(f"{FUNCTION}{tool}>") if tool else f'"{FUNCTION}" /[^<>\\n]{{1,128}}/ ">"'
    return f'{name}: {head} {gap} {parameters} "</function>" {end}\n'


def _parameters(schema: JsonObject, value: Callable[[str], str], *, is_held: bool) -> str:
    """All that the schema lists, in its order; any, if it lists none and allows them."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return "" if schema.get("additionalProperties") is False else ANY_PARAMETERS
    gap = lark.WS if is_held else '"\\n"'
    required = _required(schema)
    parts = []
    for key in filter(_is_writable, properties):
        part = f"{lark.literal(f'{PARAMETER}{key}>')} {value(key)} {gap}"
        parts.append(part if key in required else f"({part})?")
    return " ".join(parts)


def _check(schema: JsonObject) -> None:
    """Raise Unwritable where parameters of their own cannot make up any input of `schema`."""
    if unknown := schema.keys() - KNOWN:
        raise Unwritable(f"{', '.join(sorted(unknown))} at the top level of a tool's schema")
    if "properties" not in schema and isinstance(schema.get("additionalProperties"), dict):
        raise Unwritable("additionalProperties with a schema")
    listed = schema.get("properties")
    for key in _required(schema):
        if not isinstance(listed, dict) or key not in listed:
            raise Unwritable(f"a required property that is not listed, {key!r:.80}")
        if not _is_writable(key):
            raise Unwritable(f"a property called {key!r:.80}")


def _required(schema: Mapping[str, JsonValue]) -> list[str]:
    required = schema.get("required")
    return [str(key) for key in required] if isinstance(required, list) else []


def _is_writable(key: str) -> bool:
    return 0 < len(key) <= MAX_KEY_CHARS and not set(key) & set("<>\n")
