"""The pieces that all grammars are made of, in the Lark dialect of llguidance.

A grammar is text: rules in small letters, lexemes in capitals, and `%json` for what a JSON
Schema describes. JSON is compact throughout: white space that may repeat is a loop that
small models do not leave. Knows the dialect, no format of calls (`calls.py`,
`xml_calls.py`). Source: llguidance, docs/syntax.md and docs/json_schema.md.
"""

from __future__ import annotations

import json
from typing import Final

from minimsg.constrain.vocabulary import Vocabulary
from minimsg.protocol.wire import JsonObject

MAX_DEPTH: Final = 32  # of containers in JSON without a schema
ANY_VALUE: Final = f"json_{MAX_DEPTH}"
ANY_OBJECT: Final = f"object_{MAX_DEPTH}"
RAW: Final = "raw"  # text up to the end of a parameter in a tag

# Numbers that every reader of JSON takes: bounded digits, and none beyond a float.
_SCALARS: Final = r"""
STRING: /"([^"\\\x00-\x1f\x7f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
NUMBER: /-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?/
scalar: STRING | NUMBER | "true" | "false" | "null"
json_0: scalar
"""
_CONTAINERS: Final = """
json_{depth}: scalar | object_{depth} | array_{depth}
object_{depth}: "{{" (STRING ":" json_{inner} ("," STRING ":" json_{inner})*)? "}}"
array_{depth}: "[" (json_{inner} ("," json_{inner})*)? "]"
"""
_ANY_JSON: Final = _SCALARS + "".join(
    _CONTAINERS.format(depth=depth, inner=depth - 1) for depth in range(1, MAX_DEPTH + 1)
)
_RAW: Final = r"raw[lazy]: /(?s:.*)<\/parameter>/" + "\n"

# The engine otherwise leaves only the canonical token where one text can follow. Two grammars
# that must both hold would see that at different places, and agree on no token.
_UNFORCED: Final = '%llguidance {"no_forcing": true}\n'


def grammar(*rules: str, is_forcing: bool = True) -> str:
    """`rules`, of which the first is `start`, and the common ones that they name."""
    text = "".join(rules)
    if ANY_VALUE in text or ANY_OBJECT in text:
        text += _ANY_JSON
    if RAW in text:
        text += _RAW
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
