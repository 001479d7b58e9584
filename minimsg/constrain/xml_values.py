r"""What may stand in a parameter's tag: text as it is, or JSON of any kind but a string.

The parser (`parsing/qwen_xml.py`) takes the text between two line breaks for JSON, if it is
JSON of a kind that the schema allows, and else for a string. So a string is written as it
is; where a string and something else may stand, such text must not look like the other,
unless any value of that kind will do. Knows one parameter, not where it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from minimsg.constrain import lark
from minimsg.constrain.schema_parts import at, references
from minimsg.parsing.schema_kinds import Kinds, as_json, parameter_kinds
from minimsg.parsing.xml_value import END_OF_VALUE
from minimsg.protocol.wire import JsonObject

END: Final = lark.literal(f"\n{END_OF_VALUE}")
TAG: Final = END_OF_VALUE.replace("/", r"\/")
ENDS_ONCE: Final = f"~/(?s:.*){TAG}(?s:.+)/"  # a value ends where its tag first comes

# Kinds whose values are a word: any of them, what is read as one, and how that begins.
WORDS: Final = {
    "null": "null",
    "boolean": "true|false",
    "integer": "-?(0|[1-9][0-9]{0,30})",
    "number": r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?",
}
READ_AS: Final = {
    "null": "null|None",
    "boolean": "true|false|True|False",
    "integer": "[-0-9][-+.0-9eE]*",
    "number": "[-0-9][-+.0-9eE]*",
}
BEGINS: Final = {"object": r"\{", "array": r"\[", "integer": "[-0-9]", "number": "[-0-9]"}

NOTES: Final = frozenset({"title", "description", "default", "examples", "deprecated",
    "$comment", "readOnly", "writeOnly"})  # fmt: skip
LENGTHS: Final = frozenset({"minLength", "maxLength"})
KINDS: Final = ("string", "number", "boolean", "null", "object", "array")
NUMERIC: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": NUMERIC,
    "integer": NUMERIC,
    "boolean": (),
    "null": (),
    "object": ("properties", "required", "additionalProperties", "patternProperties",
        "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
}  # fmt: skip
ANY_KEYWORD: Final = frozenset(word for words in KEYWORDS.values() for word in words)
MAX_STEPS: Final = 8  # of references to references


class Unwritable(ValueError):
    """A schema that this form of calls cannot be held to; says what of it."""


class ValueWriter:
    """The parameters of one tool. `rules` grows by what their values need."""

    def __init__(self, name: str, schema: JsonObject) -> None:
        self.rules: list[str] = []
        self._name = name
        self._schema = schema
        style = schema.get("x-guidance")
        self.is_lenient = isinstance(style, dict) and style.get("lenient") is True

    def value(self, key: str) -> str:
        """What may follow the tag of `key`, its end included. Raises Unwritable."""
        properties = self._schema["properties"]
        assert isinstance(properties, dict)
        kinds = parameter_kinds(self._schema, key)
        try:
            if "string" not in kinds:
                return self._json(properties[key])
            return self._mixed(list(self._choices(properties[key])), kinds)
        except Unwritable as problem:
            if self.is_lenient:
                return lark.RAW
            raise Unwritable(f"{problem}, in properties.{key}") from None

    def _mixed(self, choices: list[JsonObject], kinds: Kinds) -> str:
        """Text or something else: words and text as one lexeme, JSON where it begins otherwise.

        One lexeme, since the engine never goes back to a shorter one once a longer one began.
        """
        texts = [choice for choice in choices if _kind(choice) == "string"]
        others = [choice for choice in choices if _kind(choice) != "string"]
        if any(map(_is_any, texts)):  # then so may text that looks like any of these
            others = [other for other in others if not _is_any(other)]
            if not others:
                return lark.RAW
        excluded = "".join(f" & {pattern}" for pattern in sorted(_exclusions(others)))
        parts = [part for text in texts for part in self._text(text, kinds, excluded)]
        parts += [f"/\\n({_word(other)})\\n{TAG}/" for other in others if _is_word(other)]
        rules = [self._lexeme(" | ".join(parts))] if parts else []
        if json_others := [other for other in others if not _is_word(other)]:
            rules.append(self._json({"anyOf": [*json_others]}))
        if not rules:
            raise Unwritable("values that would be read as others")
        return f"({' | '.join(rules)})"

    def _choices(self, part: JsonValue) -> Iterator[JsonObject]:
        """All that `part` allows, as schemas with one `type` or a `const` each."""
        part = self._resolved(part)
        said = part.keys() - NOTES - {"type"}
        kinds = part.get("type", list(KINDS))
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if said <= {"enum", "const"} and said:
            yield from ({"const": value} for value in _values(part, frozenset(map(str, kinds))))
        elif len(said) == 1 and isinstance(choices := part.get("anyOf", part.get("oneOf")), list):
            for choice in choices:
                yield from self._choices(choice)
        elif said <= ANY_KEYWORD:
            for kind in map(str, kinds):
                own = {word: part[word] for word in said if word in KEYWORDS[kind]}
                yield {**own, "type": kind}
        else:
            raise Unwritable(", ".join(sorted(said)))

    def _resolved(self, part: JsonValue) -> JsonObject:
        """`part`, or what it does no more than refer to."""
        for _ in range(MAX_STEPS):
            if part is True:
                return {}
            if not isinstance(part, dict):
                break
            said = part.keys() - NOTES
            if said == {"$ref"}:
                part = at(str(part["$ref"]), self._schema)
            elif said == {"allOf"} and isinstance(only := part["allOf"], list) and len(only) == 1:
                part = only[0]
            else:
                return part
        raise Unwritable("a reference that leads nowhere")

    def _text(self, text: JsonObject, kinds: Kinds, excluded: str) -> Iterator[str]:
        """What a string may be, its end included, but for what is `excluded`."""
        said = text.keys() - NOTES - {"type"}
        if "const" in text:
            word = str(text["const"])
            is_read = as_json(word, kinds) == json.dumps(word, ensure_ascii=False)
            if is_read and END_OF_VALUE not in word:
                yield lark.literal(f"\n{word}\n{END_OF_VALUE}")
        elif said <= LENGTHS:
            bounds = f"{text.get('minLength', 0)},{text.get('maxLength', '')}"
            yield f"/\\n(?s:.){{{bounds}}}\\n{TAG}/ & {ENDS_ONCE}{excluded}"
        else:
            raise Unwritable(", ".join(sorted(said)))

    def _lexeme(self, parts: str) -> str:
        name = f"{self._name}_{len(self.rules)}".upper()
        self.rules.append(f"{name}: {parts}\n")
        return name

    def _json(self, part: JsonValue) -> str:
        if not isinstance(part, dict):
            raise Unwritable("a property that nothing can be")
        if any(not to.startswith(("#/$defs/", "#/definitions/")) for to in references(part)):
            raise Unwritable("a reference to no definition")
        shared = ("$defs", "definitions", "x-guidance")
        part = {**part, **{key: self._schema[key] for key in shared if key in self._schema}}
        rule = f"{self._name}_{len(self.rules)}"
        self.rules.append(f"{rule}: {lark.schema(part)}\n")
        return f'"\\n" {rule} {END}'


def any_of_kind(schema: JsonObject, key: str) -> str:
    """What may follow the tag of `key`, as far as its kind tells."""
    if "string" in parameter_kinds(schema, key):
        return lark.RAW
    return f'WS? {lark.LOOSE_VALUE} WS? "{END_OF_VALUE}"'


def _values(part: JsonObject, kinds: Kinds) -> list[JsonValue]:
    """What a schema of `enum` or `const`, or both, allows of these kinds."""
    values = part.get("enum", [part.get("const")])
    assert isinstance(values, list)
    if "const" in part:
        values = [value for value in values if json.dumps(value) == json.dumps(part["const"])]
    return [value for value in values if _is_of(value, kinds)]


def _is_of(value: JsonValue, kinds: Kinds) -> bool:
    kind = _kind({"const": value})
    is_whole = isinstance(value, (int, float)) and value == int(value)
    return kind in kinds or (kind == "number" and is_whole and "integer" in kinds)


def _kind(choice: JsonObject) -> str:
    if "const" not in choice:
        return str(choice["type"])
    first = json.dumps(choice["const"])[0]
    kinds = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean"}
    return {**kinds, "n": "null"}.get(first, "number")


def _is_any(choice: JsonObject) -> bool:
    """Whether any value of its kind will do."""
    return "const" not in choice and not choice.keys() - NOTES - {"type"}


def _is_word(choice: JsonObject) -> bool:
    """Whether all that it allows can be told by a pattern: no container, no bounds."""
    kind = _kind(choice)
    return kind in WORDS and ("const" in choice or _is_any(choice))


def _word(choice: JsonObject) -> str:
    return re.escape(json.dumps(choice["const"])) if "const" in choice else WORDS[_kind(choice)]


def _exclusions(others: list[JsonObject]) -> Iterator[str]:
    """What text must not be, so that it is not taken for a value which is not allowed."""
    for other in others:
        if not _is_word(other):
            yield f"~/\\n\\s*{BEGINS[_kind(other)]}(?s:.*)/"
        elif "const" in other:
            yield f"~/\\n\\s*({READ_AS[_kind(other)]})\\s*{TAG}/"
