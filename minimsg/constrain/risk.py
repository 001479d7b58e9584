"""Schemas whose compilation may take for ever, and a process that ends in time.

The engine intersects patterns and compares properties pairwise, and nothing stops it: ten
patterns in an `allOf` take 0.3 s, a hundred more than anybody has waited for; nor can a
thread be stopped. So such a schema is first compiled in a process of its own, with a
deadline; what has passed there once takes no longer here. Compiling any other takes time
in proportion to its size.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from typing import Final

from pydantic import JsonValue

from minimsg.constrain.compiler import limits, said
from minimsg.constrain.schema_parts import parts_of

START_S: Final = 15.0  # of the process itself: 0.3 s, on a busy machine many times that
DEADLINE_S: Final = 5.0
MAX_PLAIN_PROPERTIES: Final = 300  # of one object: 0.1 s; the time grows with the square
INTERSECTING: Final = frozenset({"pattern", "patternProperties", "allOf", "oneOf"})
REFERRING: Final = frozenset({"$ref", "anyOf"})
HARMLESS: Final = frozenset({"title", "description", "default", "examples", "$defs",
    "definitions", "$schema", "$id", "$comment", "x-guidance"})  # fmt: skip


def is_risky(schema: JsonValue) -> bool:
    """Whether compiling `schema` may take longer than its size tells."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            said_here = here.keys() - HARMLESS
            properties = here.get("properties")
            if said_here & INTERSECTING or (said_here & REFERRING and len(said_here) > 1):
                return True
            if isinstance(properties, dict) and len(properties) > MAX_PLAIN_PROPERTIES:
                return True
        waiting += [part for _, part in parts_of(here)]
    return False


async def problem_in_time(text: str, *, deadline_s: float = DEADLINE_S) -> str:
    """Why the grammar `text` cannot be taken; "" if it can. Raises TimeoutError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "minimsg.constrain.risk"),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,  # Ctrl-C is for the server, which ends its processes itself
    )
    assert process.stdout
    try:
        async with asyncio.timeout(START_S):
            await process.stdout.readline()
        async with asyncio.timeout(deadline_s):
            problem, _ = await process.communicate(text.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        return "the grammar engine ended on it"
    return problem.decode()


def main() -> None:
    """Say that it begins, compile the grammar on the standard input, write what is wrong."""
    from llguidance import LLMatcher

    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
    text = sys.stdin.buffer.read().decode()
    is_error, (*messages,) = LLMatcher.validate_grammar_with_warnings(text, limits=limits())
    sys.stdout.buffer.write(said(messages[0]).encode() if is_error else b"")


if __name__ == "__main__":
    main()
