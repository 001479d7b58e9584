"""Calls of tools as grammars, in each format that `parsing/` reads.

A call is written here in one of the many ways that its parser takes: that of the models'
own templates. It has two uses. A reply that must call is held from its first token on,
tags included. A call that the model began by itself is held from its name on, to its end.
JSON calls are here, calls with a tag for each parameter in `xml_calls.py`.
To add a format: a line in `FORMS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from minimsg.constrain import lark
from minimsg.constrain.heads import in_one_way
from minimsg.constrain.reading import Call
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.constrain.xml_calls import XmlBody
from minimsg.parsing import hermes
from minimsg.protocol.wire import JsonObject


class Body(Protocol):
    """What stands between the tags of a call, as rules that begin with `name`."""

    is_json: ClassVar[bool]  # all of it

    def rules(self, name: str, tool: str, schema: JsonObject | None, *, is_held: bool) -> str:
        """A call of `tool`. `schema`: what its input must be, made ready; None: any object.

        Raises Unwritable for a schema that this format cannot write every input of.
        """

    def loose_rules(self, name: str, tools: Mapping[str, JsonObject | None]) -> str:
        """A held call of any of `tools`, or of any tool at all if there are none.

        All that the parser makes an input of, but for what readers of JSON would refuse.
        """

    def beginning(self, call: Call) -> str | None:
        """How the model began `call`, as the rules of a held one have it; None: in no such way."""


@dataclass(frozen=True)
class JsonBody:
    """`{"name": "now", "arguments": {}}`; `key` is what the input is called."""

    key: str
    is_json: ClassVar[bool] = True

    def rules(self, name: str, tool: str, schema: JsonObject | None, *, is_held: bool) -> str:
        head = lark.literal(f'{{"name": "{tool}"')
        given = lark.ANY_OBJECT if schema is None else f"{name}_input"
        key = lark.literal(f'"{self.key}"')
        if is_held:
            rest = f'WS? "," WS? {key} WS? ":" WS? {given} WS? "}}" "\\n"?'
        else:
            rest = f'", " {key} ": " {given} "}}"'
        rule = f"{name}: {head} {rest}\n"
        return rule if schema is None else f"{rule}{given}: {lark.schema(schema)}\n"

    def loose_rules(self, name: str, tools: Mapping[str, JsonObject | None]) -> str:
        head = r'"{\"name\": \"" /[a-zA-Z0-9_-]{1,128}/ "\""'
        return f'{name}: {head} WS? {lark.MEMBERS} "}}" "\\n"?\n'

    def beginning(self, call: Call) -> str | None:
        return in_one_way(call, self.key)


@dataclass(frozen=True)
class CallForm:
    """A body, the tags around it, and what stands between two calls."""

    body: Body
    between: str
    opening: str = ""
    closing: str = ""

    def enclosed(self, call: str, vocabulary: Vocabulary) -> str:
        """The rule `call`, in its tags."""
        if not self.opening:
            return call
        before, after = (lark.tag(tag, vocabulary) for tag in (self.opening, self.closing))
        return f'{before} "\\n" {call} "\\n" {after}'


JSON_BODY: Final = JsonBody("arguments")
TAGS: Final = (hermes.OPENING, hermes.CLOSING)

FORMS: Final[Mapping[str, CallForm]] = {
    "hermes": CallForm(JSON_BODY, "\n", *TAGS),
    "qwen_xml": CallForm(XmlBody(), "\n", *TAGS),
    "llama_json": CallForm(JsonBody("parameters"), "; "),
    "json": CallForm(JSON_BODY, "\n"),
}
"""By the names of `parsing/formats.py`; what is not here cannot be held."""
