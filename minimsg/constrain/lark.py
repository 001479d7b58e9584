"""The pieces that all grammars are made of, in the Lark dialect of llguidance.

A grammar is text: rules in small letters, lexemes in capitals, and `%json` for what a JSON
Schema describes. White space that may repeat is a loop that small models do not leave:
JSON that is asked for has one spacing, and that which a model writes by itself has little.
Knows the dialect, no format of calls (`calls.py`, `xml_calls.py`).
Source: llguidance, docs/syntax.md and docs/json_schema.md.
"""

from __future__ import annotations

import json
import re
from typing import Final

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.protocol.wire import JsonObject

MAX_DEPTH: Final = 32  # of containers, where no schema says less
ANY_OBJECT: Final = f"object_{MAX_DEPTH}"  # JSON with a space after each comma and colon
LOOSE_VALUE: Final = f"loose_{MAX_DEPTH}"  # all that the parser of replies makes JSON of
MEMBERS: Final = f"members_{MAX_DEPTH}"  # of a loose object, and a comma before each
RAW: Final = "raw"  # text up to the end of a parameter in a tag
SPACE: Final = r"[ \t\r\n]{1,40}"  # enough to indent, not to loop
WS: Final = "WS?"

# Numbers that every reader of JSON takes: bounded digits, and none beyond a float.
_NUMBER: Final = r"""
NUMBER: /-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?/
"""
_SPACED: Final = r"""
STRING: /"([^"\\\x00-\x1f\x7f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
scalar: STRING | NUMBER | "true" | "false" | "null"
json_0: scalar
"""
_SPACED_LEVEL: Final = """
json_{depth}: scalar | object_{depth} | array_{depth}
object_{depth}: "{{" (STRING ": " json_{inner} (", " STRING ": " json_{inner})*)? "}}"
array_{depth}: "[" (json_{inner} (", " json_{inner})*)? "]"
"""
_LOOSE: Final = r"""
quoted: /"([^"\\]|\\(?s:.))*"/ | /'([^'\\]|\\(?s:.))*'/
word: quoted | NUMBER | /true|false|null|True|False|None/
loose_0: word
"""
_LOOSE_LEVEL: Final = """
loose_{depth}: word | "{{" WS? (member_{depth} members_{depth})? "}}" | list_{depth}
member_{depth}: quoted WS? ":" WS? loose_{inner} WS?
members_{depth}: ("," WS? member_{depth})* ("," WS?)?
list_{depth}: "[" WS? (loose_{inner} WS? ("," WS? loose_{inner} WS?)* ("," WS?)?)? "]"
"""


def _levels(level: str) -> str:
    depths = range(1, MAX_DEPTH + 1)
    return "".join(level.format(depth=depth, inner=depth - 1) for depth in depths)


_COMMON: Final = {
    ANY_OBJECT: _SPACED + _levels(_SPACED_LEVEL),
    f"{LOOSE_VALUE}|{MEMBERS}": _LOOSE + _levels(_LOOSE_LEVEL),
    "NUMBER": _NUMBER,
    "WS": f"WS: /{SPACE}/\n",
    RAW: r"raw[lazy]: /(?s:.*)<\/parameter>/" + "\n",
}
"""Rules that a grammar gets if it names them: each may name those below it."""

# The engine otherwise leaves only the canonical token where one text can follow. Two grammars
# that must both hold would see that at different places, and agree on no token.
_UNFORCED: Final = '%llguidance {"no_forcing": true}\n'


def grammar(*rules: str, is_forcing: bool = True) -> str:
    """`rules`, of which the first is `start`, and the common ones that they name."""
    text = "".join(rules)
    for name, common in _COMMON.items():
        if re.search(rf"\b({name})\b", text):
            text += common
    return text if is_forcing else _UNFORCED + text


def literal(text: str) -> str:
    """`text` as it is, never a control token."""
    return json.dumps(text, ensure_ascii=False)


def tag(text: str, vocabulary: Vocabulary) -> str:
    """A tag as the model writes it: its control token if it has one, else text."""
    id = vocabulary.tokenizer.control.get(text)
    return literal(text) if id is None else f"<[{id}]>"


def schema(value: JsonObject) -> str:
    """JSON of a schema that `schema.py` made ready."""
    return f"%json {json.dumps(value, ensure_ascii=False)}"
