"""Whatever JSON is sent, it is accepted or refused, and in good time."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from minimsg.errors import InvalidRequest
from minimsg.protocol.dialect import NEW, OLD, PLAIN, Dialect
from minimsg.protocol.gates import KINDS, tags_of
from minimsg.protocol.request import CountTokensRequest, MessagesRequest, PromptRequest
from minimsg.protocol.rules import unheeded
from minimsg.protocol.validation import validate

from .rows.row import HI, Json, call, result, text, tool
from .test_rules_table import BASE, ROWS

NAMES: Final = sorted(
    {*MessagesRequest.model_fields, "type", "text", "role", "content", "source", "name", "input"}
)
TAGS: Final = sorted({tag for union, _ in KINDS.values() for tag in tags_of(union)})
ANYTHING: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**30, -(10**30), 1 << 63])
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(TAGS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=10,
)
DIALECTS: Final = st.sampled_from(
    [Dialect("compat", OLD), Dialect("compat", NEW), Dialect("strict", OLD), Dialect("strict", NEW)]
)
KIND: Final = st.sampled_from([MessagesRequest, CountTokensRequest])


def read(kind: type[PromptRequest], body: Json, dialect: Dialect) -> None:
    """Raise whatever else than a refusal reading `body` raises."""
    with suppress(InvalidRequest):
        request = validate(kind, body, dialect).request
        assert all(isinstance(path, str) for path in unheeded(request, dialect))
        request.check(dialect)


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(NAMES), ANYTHING), KIND, DIALECTS)
def test_any_fields_are_accepted_or_refused(
    fields: Any, kind: type[PromptRequest], dialect: Dialect
) -> None:
    read(kind, {**BASE, **fields}, dialect)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container inside `value` with each of its keys."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield value, key
        yield from places(value[key])


@settings(max_examples=200)
@given(st.data(), KIND, DIALECTS)
def test_a_request_with_anything_in_one_place_is_accepted_or_refused(
    data: st.DataObject, kind: type[PromptRequest], dialect: Dialect
) -> None:
    body = copy.deepcopy({**BASE, **data.draw(st.sampled_from(ROWS)).fields})
    holder, key = data.draw(st.sampled_from(list(places(body))))
    holder[key] = data.draw(ANYTHING)
    read(kind, body, dialect)


def nested(depth: int) -> Json:
    inner: Json = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize("depth", [100, 2_000])
def test_depth_is_no_trouble(depth: int) -> None:
    deep = nested(depth)
    asked: JsonValue = {"role": "assistant", "content": [call(input=deep)]}
    bodies: list[Json] = [
        {"tools": [tool(input_schema={**deep, "type": "object"})]},
        {"messages": [HI, asked]},
        {"unknown": deep},
    ]
    for body in bodies:
        read(MessagesRequest, {**BASE, **body}, PLAIN)


def texts(number: int) -> Json:
    return {"messages": [{"role": "user", "content": [text() for _ in range(number)]}]}


def turns(number: int) -> Json:
    replies: list[JsonValue] = [{"role": "assistant", "content": "y"}, HI]
    return {"messages": [HI, *replies * (number // 2)]}


def calls(number: int) -> Json:
    ids = [f"t{n}" for n in range(number)]
    asked: JsonValue = {"role": "assistant", "content": [call(id) for id in ids]}
    return {"messages": [HI, asked, {"role": "user", "content": [result(id) for id in ids]}]}


def system_turns(number: int) -> Json:
    told: list[JsonValue] = [{"role": "system", "content": "s"}]
    return {"messages": [HI, *told * number]}


def unknown_fields(number: int) -> Json:
    return {"messages": [{"role": "user", "content": [text(id=n) for n in range(number)]}]}


def properties(number: int) -> Json:
    schema: Json = {"type": "object", "properties": {f"p{n}": {} for n in range(number)}}
    return {"tools": [tool(input_schema=schema, input_examples=[{}, {"p1": 1}])]}


def tools(number: int) -> Json:
    return {"tools": [tool(f"f{n}") for n in range(number)]}


@pytest.mark.parametrize(
    "fields",
    [texts, turns, calls, system_turns, unknown_fields, properties, tools],
    ids=lambda fields: fields.__name__,
)
@pytest.mark.parametrize("dialect", [PLAIN, Dialect("strict", NEW)], ids=["compat", "strict"])
def test_ten_times_as_much_takes_about_ten_times_as_long(
    fields: Callable[[int], Json], dialect: Dialect
) -> None:
    """The square would be a hundred; the API's 100,000 messages are twenty times the larger."""
    few, many = (seconds({**BASE, "max_tokens": 8, **fields(n)}, dialect) for n in (500, 5_000))
    assert many < 40 * few


def seconds(body: Json, dialect: Dialect) -> float:
    """What reading `body` takes at best: a garbage collection is nobody's fault."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        read(MessagesRequest, body, dialect)
        times.append(time.process_time() - begin)
    return min(times)


def test_a_schema_of_endless_branches_is_given_up_on() -> None:
    steps: Json = {
        f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}, {"$ref": f"#/$defs/s{n + 1}"}]}
        for n in range(40)
    }
    schema: Json = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/s0"}},
        "$defs": {**steps, "s40": {"type": "null"}},
    }
    doubled: Json = {"tools": [tool(input_schema=schema, input_examples=[{"a": 1}])]}
    assert seconds({**BASE, **doubled}, PLAIN) < 1
