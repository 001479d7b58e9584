"""From bytes to a checked request, and from pydantic's errors to the API's words.

Knows JSON and pydantic; the types it checks against are in `request.py`. The first
error decides the message. In profile `compat` unknown fields are no error: they are left
out and their paths are returned, so that the server can list them in a header.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails, from_json

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.dialect import PLAIN, Dialect
from minimsg.protocol.gates import check_gates

R = TypeVar("R", bound=BaseModel)

MAX_MESSAGE_CHARS = 1_000  # an error quotes what the client sent; not all 32 MB of it
MAX_SHOWN_PATH_CHARS = 200  # of a path that is long because it is too deep
STRICTLY_REQUIRED: Final = {"max_tokens"}

# Where a float beyond 1.8e308, which is read as infinity, may be: three digits of an
# exponent, or so many before it that two are enough. Looking costs 10 ns a byte.
HUGE_NUMBER: Final = re.compile(rb"[0-9](?:[0-9]{208}|[eE]\+?[0-9]{3})")


@dataclass(frozen=True)
class Validated(Generic[R]):
    """A request and the JSON paths of the fields that nobody here reads."""

    request: R
    ignored: list[str]


def parse_json(body: bytes, dialect: Dialect = PLAIN) -> JsonValue:
    """`body` as JSON: an object in UTF-8 without a mark, 200 levels deep, numbers all finite.

    Of equal keys the last one wins for everybody who reads the request; a strict dialect
    refuses them. Raises InvalidRequest.
    """
    try:
        data: JsonValue = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        with suppress(ValueError):
            _refuse_non_finite(from_json(body, allow_inf_nan=True))
        raise InvalidRequest("", f"The request body is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidRequest("", "The request body is not valid JSON: it must be an object")
    if HUGE_NUMBER.search(body):
        _refuse_non_finite(data)
    if dialect.is_strict:
        _refuse_equal_keys(body)
    return data


def validate(kind: type[R], data: object, dialect: Dialect) -> Validated[R]:
    """`data` as a `kind`, and what was left out (nothing if strict). Raises InvalidRequest."""
    check_gates(data, dialect)
    if dialect.is_strict:
        _check_required(kind, data)
    try:
        return Validated(kind.model_validate(data), [])
    except ValidationError as error:
        ignored = [] if dialect.is_strict else _unknown_fields(error, data)
        if not ignored:
            raise _invalid(error, data) from None
    try:
        return Validated(kind.model_validate(data, extra="ignore"), ignored)
    except ValidationError as error:
        raise _invalid(error, data) from None


def _check_required(kind: type[BaseModel], data: object) -> None:
    """What types leave out, since only the hosted API has no default for it."""
    for name in STRICTLY_REQUIRED & kind.model_fields.keys():
        if isinstance(data, dict) and data.get(name) is None:
            why = "Input should be a valid integer" if name in data else "Field required"
            raise InvalidRequest(name, why)


def _unknown_fields(error: ValidationError, data: object) -> list[str]:
    """The paths of fields that no type has; of very many, which take seconds to name, a number."""
    if error.error_count() > LIMITS.faults:
        return [f"{error.error_count()}-fields"]
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [_path(detail, data) for detail in details if detail["type"] == "extra_forbidden"]


def _invalid(error: ValidationError, data: object) -> InvalidRequest:
    """The first of pydantic's complaints in the API's words."""
    if error.error_count() > LIMITS.faults:
        why = f"The request has {error.error_count()} errors > {LIMITS.faults} maximum"
        return InvalidRequest("", why)
    detail = _most_telling(error.errors(include_url=False, include_input=False), data)
    path, why = _path(detail, data), detail["msg"]
    if detail["type"] == "union_tag_not_found":
        path, why = f"{path}.type", "Field required"
    elif detail["type"] in ("model_type", "model_attributes_type"):
        why = "Input should be a valid dictionary"
    elif detail["type"] == "recursion_loop":
        path, why = path[:MAX_SHOWN_PATH_CHARS], "Input is nested too deeply"
    return InvalidRequest(path[:MAX_MESSAGE_CHARS], why[:MAX_MESSAGE_CHARS])


def _most_telling(details: list[ErrorDetails], data: object) -> ErrorDetails:
    """The first complaint; of those about the members of a union, one about what it holds."""
    first = details[0]
    place = _steps(first, data)
    if len(place) == len(first["loc"]):
        return first
    inside = (
        d
        for d in details
        if len(d_place := _steps(d, data)) > len(place) and d_place[: len(place)] == place
    )
    return next(inside, first)


def _path(detail: ErrorDetails, data: object) -> str:
    return ".".join(_steps(detail, data))


def _steps(detail: ErrorDetails, data: object) -> list[str]:
    """Where in `data`: keys, places and tags, without the names of members of unions.

    A tag, such as `tool_use`, is a step of the hosted API's paths too.
    """
    steps: list[str] = []
    names_absent = detail["type"] in ("missing", "extra_forbidden")
    may_be_tag = True  # once an object
    for number, step in enumerate(detail["loc"], start=1):
        is_last = number == len(detail["loc"])
        if may_be_tag and isinstance(data, dict) and _is_tag(step, data):
            may_be_tag = False
        elif isinstance(data, dict) and step in data:
            data, may_be_tag = data[step], True
        elif isinstance(data, list) and isinstance(step, int):
            data, may_be_tag = data[step] if step < len(data) else None, True
        elif not (is_last and names_absent):
            continue
        steps.append(str(step))
    return steps


def _is_tag(step: str | int, data: dict[str, object]) -> bool:
    """Whether `step` is the `type` of the object; a tool without one is `custom`."""
    is_holder = isinstance(data.get(str(step)), (dict, list))
    return not is_holder and step == (data.get("type") or "custom")


def _refuse_non_finite(data: JsonValue) -> None:
    """Name the place of a NaN or Infinity, which JSON does not have and Python writes."""
    for path in _non_finite(data, ()):
        raise InvalidRequest(".".join(path)[:MAX_MESSAGE_CHARS], "Input should be a finite number")


def _non_finite(data: JsonValue, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(data, float) and not math.isfinite(data):
        yield path
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _non_finite(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _non_finite(value, (*path, str(index)))


def _refuse_equal_keys(body: bytes) -> None:
    """Pydantic keeps the last of equal keys and forgets the others; Python's parser shows all."""

    def look(pairs: list[tuple[str, object]]) -> None:
        if len({key for key, _ in pairs}) < len(pairs):
            keys = Counter(key for key, _ in pairs)
            key = keys.most_common(1)[0][0][:MAX_MESSAGE_CHARS]
            why = f"the key {key!r} appears more than once in an object"
            raise InvalidRequest("", f"The request body is not valid JSON: {why}")

    json.loads(body, object_pairs_hook=look, parse_int=str, parse_float=str)
