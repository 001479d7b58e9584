"""Where in a schema stands what the grammar engine refuses, and in which words to say so.

The engine says what is wrong, not where: the first schema that says such a thing is the
place. What the engine refuses rather than enforces loosely (llguidance 1.9): `not`, `if`,
`uniqueItems`, `contains`, `propertyNames`, `dependentRequired`, `dependentSchemas`,
`unevaluated...`, unknown formats, patterns with look-around or back references, remote
references, `oneOf` whose alternatives may overlap, `maxProperties` of optional ones.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import JsonValue

from minimsg.constrain.compiler import TOO_COMPLEX, is_too_large
from minimsg.constrain.schema_parts import parts_of
from minimsg.errors import InvalidRequest
from minimsg.protocol.wire import JsonObject

Says = Callable[[Mapping[str, JsonValue], str], bool]  # whether a schema says what is quoted

CAUSES: Final[tuple[tuple[str, str, Says], ...]] = (
    (r'Unimplemented keys: \["(.+?)"', "'{}'", lambda here, key: key in here),
    (r"Unknown format: (.+)", "format '{}'", lambda here, name: here.get("format") == name),
    (r"pattern '(.+)': .+", "this pattern", lambda here, text: here.get("pattern") == text),
    (r"Resource '(.+)' is not", "'$ref' to '{}'", lambda here, to: here.get("$ref") == to),
    (r"Pointer '(.+)' does", "'$ref' to '#{}'", lambda here, to: here.get("$ref") == f"#{to}"),
    (r"(oneOf)", "'oneOf' of overlapping alternatives", lambda here, key: key in here),
    (r"min/(maxProperties)", "'{}'", lambda here, key: key in here),
)
"""How the engine says it, how we do, and what the place looks like."""


def refusal(path: str, schema: JsonObject, problem: str) -> InvalidRequest:
    """The error for `schema` at the JSON path `path`, which the engine refuses."""
    if is_too_large(problem):
        return InvalidRequest(path, TOO_COMPLEX)
    for cause, words, says in CAUSES:
        if match := re.match(cause, problem):
            what, place = words.format(match[1]), _place(schema, says, match[1])
            return InvalidRequest(f"{path}{place}", f"{what} cannot be enforced; leave it out")
    return InvalidRequest(path, f"cannot be enforced: {problem[:200]}")


def _place(schema: JsonObject, says: Says, quoted: str) -> str:
    """The steps to the first schema that says it; "" is the root, or nowhere."""
    waiting: deque[tuple[str, JsonValue]] = deque([("", schema)])
    while waiting:
        place, here = waiting.popleft()
        if isinstance(here, dict) and says(here, quoted):
            return place
        waiting += [(f"{place}.{step}", part) for step, part in parts_of(here)]
    return ""
