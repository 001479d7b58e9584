"""The small JSON files of a model folder, read value by value; what does not fit names itself.

Knows JSON and types, not what a value means: that is for `models/config.py` and
`prompt/chat.py`. `null` counts as absent, as in Hugging Face configs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from minimsg.errors import CheckpointError

LARGEST: Final = sys.float_info.max  # JSON has larger integers, and Python reads Infinity
MAX_SIZE: Final = 1 << 24  # above any published size; products of three still fit 64 bits


class Fields:
    """A JSON object; every reader raises `CheckpointError` on absence or a wrong type."""

    def __init__(self, data: Mapping[str, object], source: object) -> None:
        self.data = {key: value for key, value in data.items() if value is not None}
        self.nulls = data.keys() - self.data.keys()  # for the few keys whose absence says more
        self.source = source

    @classmethod
    def from_file(cls, file: Path, *, is_required: bool = True) -> Fields:
        """The object in `file`; an empty one if there is no such file and it is not required."""
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if not is_required:
                return cls({}, file)
            raise CheckpointError(file, "no such file", "a JSON object") from None
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(file, str(error), "a JSON object") from error
        if not isinstance(data, dict):
            raise CheckpointError(file, f"a {type(data).__name__}", "a JSON object")
        return cls(data, file)

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default, "a string")
        return value if isinstance(value, str) else self._refuse(key, "a string")

    def boolean(self, key: str, default: bool) -> bool:
        value = self._get(key, default, "true or false")
        return value if isinstance(value, bool) else self._refuse(key, "true or false")

    def integer(
        self, key: str, default: int | None = None, *, minimum: int = 1, maximum: int = MAX_SIZE
    ) -> int:
        expected = f"an integer from {minimum} to {maximum}"
        value = self._get(key, default, expected)
        if isinstance(value, int) and type(value) is not bool and minimum <= value <= maximum:
            return value
        return self._refuse(key, expected)

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        above: float = 0.0,
        or_zero: bool = False,
        maximum: float = LARGEST,
    ) -> float:
        expected = f"zero or a number above {above:g}" if or_zero else f"a number above {above:g}"
        expected += "" if maximum == LARGEST else f", at most {maximum:g}"
        value = self._get(key, default, expected)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._refuse(key, expected)
        is_in_range = above < value <= maximum or (or_zero and value == 0)
        return float(value) if is_in_range else self._refuse(key, expected)

    def optional_number(self, key: str) -> float | None:
        return self.number(key) if key in self else None

    def names(self, key: str) -> list[str]:
        """A list of strings; an empty one if it is absent."""
        value = self.data.get(key, [])
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return value
        return self._refuse(key, "a list of strings")

    def ids(self, key: str, *, vocab_size: int) -> tuple[int, ...]:
        """A list of token ids, at least one."""
        return self._as_ids(key, self.data.get(key), vocab_size)

    def lists_of_ids(self, key: str, *, vocab_size: int) -> tuple[tuple[int, ...], ...]:
        """A list of lists of token ids, at least one."""
        value = self.data.get(key)
        if not isinstance(value, list) or not value:
            return self._refuse(key, "a list of lists of token ids")
        return tuple(self._as_ids(key, ids, vocab_size) for ids in value)

    def end_ids(self, key: str) -> frozenset[int]:
        """A token id or a list of them; none if absent."""
        value = self.data.get(key, [])
        ids = value if isinstance(value, list) else [value]
        if all(type(id) is int and id >= 0 for id in ids):
            return frozenset(ids)
        return self._refuse(key, "a token id or a list of token ids")

    def nested(self, key: str) -> Fields:
        """The object under `key`; an empty one if it is absent."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            return self._refuse(key, "an object")
        return Fields(value, f"{self.source}: {key}")

    def _as_ids(self, key: str, value: object, vocab_size: int) -> tuple[int, ...]:
        expected = f"token ids, at least one, from 0 to {vocab_size - 1}"
        if not isinstance(value, list) or not value:
            return self._refuse(key, expected)
        if not all(type(id) is int and 0 <= id < vocab_size for id in value):
            return self._refuse(key, expected)
        return tuple(value)

    def _get(self, key: str, default: object, expected: str) -> object:
        value = self.data.get(key, default)
        if value is None:
            raise CheckpointError(self.source, f"{key} is missing", expected)
        return value

    def _refuse(self, key: str, expected: str) -> NoReturn:
        raise CheckpointError(self.source, f"{key} is {self.data.get(key)!r:.100}", expected)
