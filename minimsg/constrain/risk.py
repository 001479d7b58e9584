"""Schemas whose compilation may take for ever, and a process that ends in time.

The engine intersects patterns and compares properties pairwise, and nothing stops it: ten
patterns in an `allOf` take 0.3 s, a hundred more than anybody has waited for; nor can a
thread be stopped. So such a schema is first compiled in a process of its own, with a limit
on its work, and a deadline, which says as much of the machine; what has passed there once
takes no longer here. Compiling any other takes time in proportion to its size.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE
from typing import Final

from pydantic import JsonValue

from minimsg.constrain.compiler import MAX_LEXER_STATES, limits, said
from minimsg.constrain.schema_parts import parts_of

try:
    import resource
except ImportError:  # not everywhere
    resource = None  # type: ignore[assignment]

STOPPED: Final = (-getattr(signal, "SIGXCPU", 0), -getattr(signal, "SIGKILL", 0))
START_S: Final = 15.0  # of the process itself: 0.3 s, on a busy machine many times that
WORK_S: Final = 5  # of one core
DEADLINE_S: Final = 15.0
TOO_LONG: Final = "compiling it took too long"
MAX_PLAIN_PROPERTIES: Final = 300  # of one object: 0.1 s; the time grows with the square
MAX_BOUNDED_CHARACTERS: Final = MAX_LEXER_STATES // 10
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


def has_long_bounds(schema: JsonValue) -> bool:
    """Whether replies in `schema` may need more states of a lexer than one may have.

    Each character of a string that has a bound is ten of them; equal bounds share theirs.
    """
    bounds, waiting = set[float](), [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            said = [here.get(keyword) for keyword in ("maxLength", "minLength")]
            bounds |= {number for number in said if isinstance(number, (int, float))}
        waiting += [part for _, part in parts_of(here)]
    return sum(bounds) > MAX_BOUNDED_CHARACTERS


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
    if process.returncode in STOPPED:
        return TOO_LONG
    if process.returncode != 0:
        return "the grammar engine ended on it"
    return problem.decode()


def main() -> None:
    """Say that it begins, compile the grammar on the standard input, write what is wrong."""
    from llguidance import LLMatcher

    limit_work()
    sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()
    text = sys.stdin.buffer.read().decode()
    is_error, (*messages,) = LLMatcher.validate_grammar_with_warnings(text, limits=limits())
    sys.stdout.buffer.write(said(messages[0]).encode() if is_error else b"")


def limit_work() -> None:
    """End this process once it has worked for too long, where the system can."""
    if resource is not None:
        used = int(time.process_time()) + 1
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used + WORK_S, most))


if __name__ == "__main__":
    main()
