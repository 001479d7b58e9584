"""A call that the model began in its own way, told in the way that its grammar has it.

The parser takes many ways of writing a JSON call, a grammar one. What is between the
brace and the name makes no difference to the rest of the call, so a held call starts over
in the grammar's way. Where the rest is another (the name stands last, or inside
`"function"`), there is nothing left to hold, or nothing that one grammar could.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from minimsg.constrain.reading import Call
from minimsg.parsing.call_object import INPUT_KEYS

TOKENS: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"?' + r"|'(?:[^'\\]|\\.)*'?" + r"|[{}:]",
    re.DOTALL,
)


def in_one_way(call: Call, key: str) -> str | None:
    """The beginning of `call`, whose input the grammar calls `key`; None: it has no such."""
    beginning = f'{{"name": "{call.name}"'
    tokens = TOKENS.findall(call.head)
    if not tokens:  # no JSON at all
        return None
    is_input_open = tokens[-1] == "{"
    depth = tokens.count("{") - tokens.count("}") - is_input_open
    keys = {token[1:-1] for token, after in pairwise(tokens) if after == ":"}
    if depth != call.is_open:
        return None
    if not call.is_open or (INPUT_KEYS & keys and not is_input_open):
        return f'{beginning},"{key}":{call.input or "{}"}' + "}" * (not call.is_open)
    return beginning + (f',"{key}":{{' if is_input_open else "") + call.rest
