"""JSON calls as small models write them: in Hermes tags, in a code fence, or bare.

    I look at the clock.
    ```json
    {"name": "now", "arguments": {}}
    ```

A bare object counts at the start of a line only, and only if it looks like a call from
its first key on. Reads: `json_calls.py`.
"""

from __future__ import annotations

from typing import Final

from minimsg.parsing import hermes
from minimsg.parsing.calls import Bare, Format, Tools
from minimsg.parsing.json_calls import FENCE, JsonCalls


def read_calls(opening: str, tools: Tools) -> JsonCalls:
    """The reader of what follows a tag or a fence, or of an object without either."""
    return JsonCalls(tools, is_tagged=opening == hermes.OPENING, is_fenced=opening == FENCE)


JSON: Final = Format(
    openings=(hermes.OPENING, FENCE),
    closings=(hermes.CLOSING, FENCE),
    reader=read_calls,
    bare=Bare.LINE,
)
