"""The parts of JSON that is too large to be read at once: where members and elements lie.

Looks at brackets and strings only; what lies between them is checked by whoever reads a
part (`validation.py`). Knows places in bytes, also of a mapped file, and keeps none of them.
Next: `batches.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from mmap import mmap
from typing import Final

from pydantic_core import from_json

from minimsg.errors import InvalidRequest

Span = tuple[int, int]  # begin and end of a value

SPACE: Final = re.compile(rb"[ \t\n\r]*+")
STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# The quote is that of a string without an end, from which nothing is to be looked for again.
TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}"]', re.DOTALL)
SCALAR: Final = re.compile(rb"[^\s,\]}\[{\"]++")


def members(data: bytes | mmap) -> Iterator[tuple[str, Span]]:
    """Key and place of each member of the object that `data` is. Raises InvalidRequest."""
    place = _after(data, 0, b"{")
    is_last = data[place : place + 1] == b"}"
    while not is_last:
        key_end = _string_end(data, place)
        value = _after(data, key_end, b":")
        end = _value_end(data, value)
        yield _key(data[place:key_end]), (value, end)
        place = _space_end(data, end)
        is_last = data[place : place + 1] == b"}"
        if not is_last:
            place = _after(data, place, b",")
    if _space_end(data, place + 1) != len(data):
        raise _invalid("trailing characters", place + 1)


def elements(data: bytes | mmap, start: int) -> Iterator[Span]:
    """The place of each element of the list at `start`. Raises InvalidRequest."""
    place = _after(data, start, b"[")
    if data[place : place + 1] == b"]":
        return
    while True:
        end = _value_end(data, place)
        yield place, end
        place = _space_end(data, end)
        if data[place : place + 1] == b"]":
            return
        place = _after(data, place, b",")


def check_part(part: bytes) -> None:
    """Raise InvalidRequest unless `part` is JSON."""
    try:
        from_json(part, allow_inf_nan=False)
    except ValueError as error:
        raise _invalid(str(error)) from None


def _value_end(data: bytes | mmap, start: int) -> int:
    """Where the value at `start` ends, by its brackets."""
    first = data[start : start + 1]
    if first == b'"':
        return _string_end(data, start)
    if first not in (b"{", b"["):
        found = SCALAR.match(data, start)
        if found is None:
            raise _invalid("expected value", start)
        return found.end()
    depth = 0
    for token in TOKEN.finditer(data, start):
        kind = token[0]
        if kind == b'"':
            break
        depth += (kind in (b"[", b"{")) - (kind in (b"]", b"}"))
        if depth == 0:
            return token.end()
    raise _invalid("it ends too early")


def _string_end(data: bytes | mmap, start: int) -> int:
    found = STRING.match(data, start)
    if found is None:
        raise _invalid("expected a string", start)
    return found.end()


def _key(literal: bytes) -> str:
    try:
        key: str = from_json(literal)
    except ValueError as error:
        raise _invalid(str(error)) from None
    return key


def _after(data: bytes | mmap, start: int, mark: bytes) -> int:
    """Where the next token begins behind the `mark` that must stand at `start`."""
    place = _space_end(data, start)
    if data[place : place + 1] != mark:
        raise _invalid(f"expected `{mark.decode()}`", place)
    return _space_end(data, place + 1)


def _space_end(data: bytes | mmap, start: int) -> int:
    found = SPACE.match(data, start)
    assert found is not None  # it may be empty
    return found.end()


def _invalid(why: str, place: int | None = None) -> InvalidRequest:
    where = "" if place is None else f" at byte {place}"
    return InvalidRequest("", f"The request body is not valid JSON: {why}{where}")
