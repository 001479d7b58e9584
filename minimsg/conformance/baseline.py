"""Known failures of a server, so that its CI is red only for what is new, or no longer true.

    [[known]]
    case = "stream.names.text"
    reason = "reported upstream, fixed in the next release"

The rule has four ways: known and failed is expected, known and passed is stale and breaks the
run (the entry must go), unknown and failed breaks it, unknown and passed is what it should be.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from minimsg.conformance.case import Table, Text, complaint
from minimsg.conformance.verdict import Result, Verdict
from minimsg.errors import ConfigError


class Known(Table):
    """One failure that is known. `since` is for readers."""

    case: Text
    reason: Text
    since: str = ""


class Baseline(Table):
    known: tuple[Known, ...] = ()


def read_baseline(path: Path) -> dict[str, str]:
    """Case id -> reason. Raises ConfigError."""
    try:
        baseline = Baseline.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {complaint(error)}") from error
    return {each.case: each.reason for each in baseline.known}


def apply(known: Mapping[str, str], results: Sequence[Result]) -> list[Result]:
    """`results` as the baseline sees them."""
    return [_seen(result, known.get(result.id)) for result in results]


def _seen(result: Result, reason: str | None) -> Result:
    if reason is None:
        return result
    if result.verdict == Verdict.FAIL:
        return replace(result, verdict=Verdict.EXPECTED, reason=reason)
    if result.verdict == Verdict.PASS:
        return replace(result, verdict=Verdict.STALE, reason=f"known as failing: {reason}")
    return result
