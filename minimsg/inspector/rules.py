"""The tables of `protocol/grammar.py` as the script that the page reads them from.

    python -m minimsg.inspector.rules > minimsg/inspector/rules.js

One truth: a test fails when the script is not what these tables make.
"""

from __future__ import annotations

import json

from minimsg.protocol.grammar import DELTAS, KNOWN, KNOWN_DELTAS, NEXT, State

HEAD = "// Made by rules.py from protocol/grammar.py; do not edit.\n\n"


def script() -> str:
    """The text of rules.js."""
    following: dict[str, dict[str, str]] = {}
    for (state, kind), after in NEXT.items():
        following.setdefault(state, {})[kind] = after
    tables = {
        "START": State.START,
        "END": State.END,
        "BLOCK_START": "content_block_start",
        "NEXT": following,
        "KNOWN": sorted(KNOWN),
        "DELTAS": DELTAS,
        "KNOWN_DELTAS": sorted(KNOWN_DELTAS),
    }
    lines = (
        f"export const {name} = {json.dumps(table, indent=2)};" for name, table in tables.items()
    )
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(script(), end="")
