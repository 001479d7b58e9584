"""What expressions in cases may call. Each takes JSON; what does not fit gives `missing`."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import from_json

from minimsg.conformance.cited import pdf, picked, spans, within


class Missing:
    """What is not there: false, and equal to nothing but itself."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "missing"


MISSING: Final = Missing()


def has(value: object) -> bool:
    """Whether there is anything, null included."""
    return value is not MISSING


def total(usage: Mapping[str, int | None]) -> int:
    """All tokens of a prompt: what was read, written to the cache, and the rest."""
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.get(key) or 0 for key in keys)


def each(items: list[Mapping[str, object]], key: str) -> list[object]:
    """One key of every item."""
    return [item.get(key, MISSING) for item in items]


def kinds(items: list[Mapping[str, object]]) -> list[object]:
    """The types of blocks or events."""
    return each(items, "type")


def of_kind(items: list[Mapping[str, object]], kind: str) -> list[Mapping[str, object]]:
    """The blocks or events of one type."""
    return [item for item in items if item.get("type") == kind]


def of_result(lines: list[Mapping[str, Any]], kind: str) -> object:
    """The first line of a batch's results that ended in one way."""
    return next((line for line in lines if line["result"]["type"] == kind), MISSING)


def deltas(events: list[Mapping[str, Any]], kind: str) -> list[object]:
    """What the deltas of one type say, in order."""
    found = [e["delta"] for e in events if e.get("type") == "content_block_delta"]
    key = {"input_json_delta": "partial_json"}.get(kind, kind.removesuffix("_delta"))
    return [delta.get(key, MISSING) for delta in found if delta.get("type") == kind]


def matches(text: str, pattern: str) -> bool:
    """Whether the whole of a text fits a regular expression."""
    return re.fullmatch(pattern, text, re.S) is not None


def unique(items: list[object]) -> bool:
    """Whether no item is there twice."""
    return len({json.dumps(item, sort_keys=True) for item in items}) == len(items)


def same(items: list[object]) -> bool:
    """Whether all items are equal."""
    return all(item == items[0] for item in items)


def parsed(text: str) -> object:
    """A text as JSON; of one that is cut, what is there."""
    value: object = from_json(text, allow_partial=True)
    return value


def is_json(text: str) -> bool:
    """Whether a text is one whole JSON value."""
    json.loads(text)
    return True


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def is_list(value: object) -> bool:
    return isinstance(value, list)


def contains_any(text: str, parts: list[str]) -> bool:
    """Whether one of `parts` is in a text."""
    return any(part in text for part in parts)


def count(items: list[object], item: object) -> int:
    """How often something is in a list, or a text in a text."""
    return items.count(item)


def repeat(text: str, times: int) -> str:
    """A text many times over."""
    return text * times


def nested(depth: int) -> object:
    """An object in an object, `depth` deep."""
    value: object = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def many(item: object, times: int) -> list[object]:
    """A list of the same item."""
    return [item] * times


def numbered(item: Mapping[str, object], key: str, times: int) -> list[object]:
    """Copies of an object whose `key` ends in 0, 1, 2 ..."""
    return [{**item, key: f"{item.get(key, '')}{number}"} for number in range(times)]


def png(width: int, height: int) -> str:
    """A grey picture in base64."""
    rows = (b"\0" + b"\x80" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*p) for p in parts)).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def hexadecimal(number: int) -> str:
    """A number as chunks write their size."""
    return f"{number:x}"


def plus(left: Any, right: Any) -> object:
    """What `+` does."""
    value: object = left + right
    return value


def minus(left: Any, right: Any) -> object:
    """What `-` does."""
    value: object = left - right
    return value


def joined(items: list[str]) -> str:
    """Texts in one."""
    return "".join(items)


_PLAIN: Final[dict[str, Callable[..., object]]] = {
    "len": len,
    "max": max,
    "min": min,
    "sorted": sorted,
    "lower": str.lower,
    "upper": str.upper,
    "starts": str.startswith,
    "ends": str.endswith,
    "split": str.split,
    "number": int,
}
_OURS: Final[tuple[Callable[..., object], ...]] = (
    has, total, each, kinds, of_kind, of_result, deltas, matches, unique, same, parsed, is_json,
    is_integer, is_text, is_object, is_list, contains_any, count, repeat, nested, many,
    numbered, png, plus, minus, joined, hexadecimal, pdf, picked, spans, within,
)  # fmt: skip
FUNCTIONS: Final[dict[str, Callable[..., object]]] = _PLAIN | {f.__name__: f for f in _OURS}
