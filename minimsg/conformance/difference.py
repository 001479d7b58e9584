"""Where two JSON values part: the first place, and no more than is needed to see it."""

from __future__ import annotations

import json
from collections.abc import Mapping

AROUND = 20  # characters of a text shown on both sides of the first that differs


def difference(left: object, right: object, path: str = "") -> str | None:
    """The first difference in words, with its path; None where there is none."""
    if left == right and type(left) is type(right):
        return None
    at = f"at {path}: " if path else ""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _in_objects(left, right, path)
    if isinstance(left, list) and isinstance(right, list):
        return _in_lists(left, right, path)
    if isinstance(left, str) and isinstance(right, str):
        return at + _in_texts(left, right)
    return f"{at}{_short(left)} and {_short(right)}" if path else None


def _in_objects(left: Mapping[str, object], right: Mapping[str, object], path: str) -> str | None:
    for key in {**left, **right}:
        if (key in left) != (key in right):
            side = "right" if key in left else "left"
            return f"{_join(path, key)} is missing on the {side}"
    found = (difference(left[key], right[key], _join(path, key)) for key in left)
    return next((each for each in found if each), None)


def _in_lists(left: list[object], right: list[object], path: str) -> str | None:
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if found := difference(one, other, _join(path, str(place))):
            return found
    return f"at {path or 'the end'}: {len(left)} items and {len(right)}"


def _in_texts(left: str, right: str) -> str:
    pairs = zip(left, right, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
    start = max(0, first - AROUND)
    one, other = (_short(text[start : first + AROUND]) for text in (left, right))
    return f"from character {first} on: ...{one} and ...{other}"


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def as_json(value: object) -> str:
    """A value for people to read; half a character, which no file can hold, is an escape."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text.encode(errors="backslashreplace").decode()


def _short(value: object) -> str:
    text = as_json(value)
    return text if len(text) <= 80 else text[:77] + "..."
