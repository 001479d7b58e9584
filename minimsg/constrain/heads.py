"""A call that the model began in its own way, told in the way that its grammar has it.

The parser takes many ways of writing a JSON call, a grammar one. What is between the
brace and the name makes no difference to the rest of the call, so a held call starts over
in the grammar's way. Where the rest is another (the name stands last, or inside
`"function"`), there is nothing left to hold, or nothing that one grammar could.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Final

from minimsg.constrain.reading import Call
from minimsg.parsing.call_object import INPUT_KEYS

STRINGS: Final = r'"(?:[^"\\]|\\.)*"?' + r"|'(?:[^'\\]|\\.)*'?"
TOKENS: Final = re.compile(STRINGS + r"|[{}:]", re.DOTALL)
SPACES: Final = re.compile(f"({STRINGS})" + r"|\s+", re.DOTALL)


def in_one_way(call: Call, key: str) -> str | None:
    """The beginning of `call`, whose input the grammar calls `key`; None: it has no such."""
    beginning = f'{{"name": "{call.name}"'
    tokens = TOKENS.findall(call.head)
    is_input_open = tokens[-1] == "{"
    depth = tokens.count("{") - tokens.count("}") - is_input_open
    keys = {token[1:-1] for token, after in pairwise(tokens) if after == ":"}
    if not call.is_open or (INPUT_KEYS & keys and not is_input_open):
        given = compact(json.dumps(json.loads(call.input or "{}"), ensure_ascii=False))
        ended = "" if call.is_open else "}"
        return f'{beginning},"{key}":{given}{ended}' if depth <= 1 else None
    if depth != 1:
        return None
    opened = f',"{key}":{{' if is_input_open else ""
    return beginning + opened + compact(call.rest)


def compact(text: str) -> str:
    """JSON, or a piece of it that starts outside of strings, without white space."""
    return SPACES.sub(lambda found: found[1] or "", text)
