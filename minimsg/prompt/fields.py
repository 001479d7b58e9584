"""The small JSON files of a model folder, read field by field, each checked when it is read.

Knows JSON and types, and turns whatever is wrong into a `CheckpointError` with the file,
what was seen and what was expected. Knows nothing of what the fields mean: `chat.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from minimsg.errors import CheckpointError


@dataclass(frozen=True)
class Fields:
    """The object in a JSON file, or one inside it. A field that is null counts as absent."""

    file: Path
    values: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A string, or None if absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def number(self, name: str, *, low: float, default: float | None = None) -> float:
        """A number of at least `low`; without a default it must be there."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, (int, float)) and value is not True and low <= value < math.inf:
            return float(value)
        raise self._wrong(name, f"a number of at least {low:g}")

    def ids(self, name: str) -> frozenset[int]:
        """A token id or a list of them; none if absent."""
        value = self.values.get(name)
        ids = [] if value is None else value if isinstance(value, list) else [value]
        if not all(type(id) is int and id >= 0 for id in ids):
            raise self._wrong(name, "a token id or a list of token ids")
        return frozenset(ids)

    def object(self, name: str) -> Fields | None:
        """An object, or None if absent."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(self.file, value)

    def _wrong(self, name: str, expected: str) -> CheckpointError:
        return CheckpointError(self.file, f"{name} is {self.values.get(name)!r:.80}", expected)


def read_fields(file: Path, *, is_required: bool = False) -> Fields:
    """The object in `file`; empty if there is no such file and it is not required."""
    expected = "a JSON object"
    try:
        values = from_json(file.read_bytes(), allow_inf_nan=False)
    except FileNotFoundError as error:
        if is_required:
            raise CheckpointError(file, "no such file", expected) from error
        return Fields(file, {})
    except (ValueError, OSError) as error:
        raise CheckpointError(file, f"{error}", expected) from error
    if not isinstance(values, dict):
        raise CheckpointError(file, f"a JSON {type(values).__name__}", expected)
    return Fields(file, values)
