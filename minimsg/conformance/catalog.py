"""The cases and features of `cases/*.toml`: read, spelled out, checked.

Three things make the files short. `[defaults]` of a file goes under each of its cases. Keys
of a step that stand in the case itself go under each of its steps, and are its only step
where it names none. `each` makes one case of every entry: its name is added to the id, its
keys are laid over the case; a text there names a table of `[groups]` that several cases
share. A file that breaks a rule of `case.py` is refused by name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from minimsg.conformance.case import Case, Step, complaint
from minimsg.conformance.feature import Feature
from minimsg.errors import ConfigError

FEATURES_FILE: Final = "features.toml"
STEP_KEYS: Final = frozenset(Step.model_fields)

# What is read from TOML and not checked yet.
Raw = dict[str, Any]
T = TypeVar("T", Case, Feature)


@cache
def load_cases() -> tuple[Case, ...]:
    """Every case of the suite, in the order of the files. Raises ConfigError."""
    found = [each for each in _folder().iterdir() if each.name.endswith(".toml")]
    texts = {each.name: each.read_text("utf-8") for each in found if each.name != FEATURES_FILE}
    return tuple(read_cases(dict(sorted(texts.items()))))


@cache
def load_features() -> tuple[Feature, ...]:
    """Every feature that cases may need, in the order in which they are looked for."""
    raw = tomllib.loads((_folder() / FEATURES_FILE).read_text("utf-8"))
    return tuple(_checked(Feature, each, FEATURES_FILE) for each in raw["feature"])


def read_cases(texts: Mapping[str, str]) -> list[Case]:
    """The cases of some files, by file name. Raises ConfigError for the first fault."""
    cases: list[Case] = []
    for name, text in texts.items():
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{name}: {error}") from error
        defaults, groups = raw.get("defaults", {}), raw.get("groups", {})
        for each in raw.get("case", []):
            spelled = _each(merge(defaults, each), groups)
            cases += [_case(one, name) for one in spelled]
    _refuse_doubles(cases)
    return cases


def select(cases: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """Those whose id fits one of `patterns` (with * and ?), or all. Raises ConfigError."""
    if not patterns:
        return list(cases)
    for pattern in patterns:
        if not any(fnmatchcase(case.id, pattern) for case in cases):
            raise ConfigError(f"no case fits {pattern!r}; --list shows their ids")
    return [case for case in cases if any(fnmatchcase(case.id, p) for p in patterns)]


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> Raw:
    """`over` laid on `under`: tables are joined, everything else is replaced."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(below or {}, value) if both else value
    return merged


def _each(case: Raw, groups: Raw) -> Iterator[Raw]:
    """`case` itself, or one case for every entry of its `each`."""
    entries = case.pop("each", None)
    if entries is None:
        yield case
        return
    entries = groups[entries] if isinstance(entries, str) else entries
    for name, over in entries.items():
        spelled = merge(case, over)
        spelled["id"] = f"{case['id']}.{name}"
        spelled["title"] = over.get("title", f"{case['title']}: {name.replace('-', ' ')}")
        yield spelled


def _case(raw: Raw, source: str) -> Case:
    shared = {key: value for key, value in raw.items() if key in STEP_KEYS}
    rest = {key: value for key, value in raw.items() if key not in STEP_KEYS | {"step"}}
    steps = [merge(shared, step) for step in raw.get("step", [{}])]
    case = _checked(Case, rest | {"steps": steps}, source)
    if case.theme != source.removesuffix(".toml"):
        raise ConfigError(f"{source}: {case.id} belongs into {case.theme}.toml")
    return case


def _checked(kind: type[T], raw: Raw, source: str) -> T:
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        name = raw.get("id") or raw.get("name")
        raise ConfigError(f"{source}: {name}: {complaint(error)}") from error


def _refuse_doubles(cases: Sequence[Case]) -> None:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise ConfigError(f"two cases have the id {case.id}")
        seen.add(case.id)


def _folder() -> Traversable:
    return files("minimsg.conformance") / "cases"
