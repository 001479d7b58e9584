"""Whatever the schema of a strict tool: it is refused by place, or every whole call is of it."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.grammars import Grammars
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.errors import InvalidRequest
from minimsg.parsing.calls import CallableTool
from tests.constrain.conftest import byte_vocabulary
from tests.constrain.driving import drawn, read

PATH = "tools.0.custom.input_schema"
TEXTS = st.text('ab\0\t\x7f"\\<>/é🙂\n 1', max_size=4)
NAMES = st.sampled_from(["a", "b", "c d", "é", "$ref"])
VALUES = st.one_of(st.none(), st.booleans(), st.integers(-50, 10**18), TEXTS,
    st.sampled_from([0.5, 1.0, 1e20, -2.5e-7, 1e300]), st.lists(st.integers(0, 9), max_size=2),
    st.just({"a": 1}))  # fmt: skip
SMALL = st.integers(0, 4)


def some(**keywords: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


def typed(name: str, **keywords: Any) -> st.SearchStrategy[dict[str, Any]]:
    return some(**keywords).map(lambda said: {"type": name, **said})


LEAVES = st.one_of(
    st.sampled_from([True, False, {}, {"type": "null"}, {"type": "boolean"}]),
    typed("string", minLength=SMALL, maxLength=SMALL, enum=st.lists(VALUES, max_size=3)),
    typed("integer", minimum=st.integers(-9, 9), maximum=st.integers(-9, 99), multipleOf=SMALL),
    typed("number", minimum=st.floats(-9, 9), exclusiveMaximum=st.integers(-9, 99)),
    VALUES.map(lambda value: {"const": value}),
    st.lists(VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.sampled_from([{"type": ["string", "null"]}, {"type": ["number", "string"], "maxLength": 2}]),
    st.sampled_from(["#", "#/$defs/x", "#/$defs/y"]).map(lambda to: {"$ref": to}),
    st.sampled_from([{"not": {}}, {"uniqueItems": True}, {"format": "date", "type": "string"}]),
)  # fmt: skip


def objects(part: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return typed(
        "object",
        properties=st.dictionaries(NAMES, part, max_size=3),
        required=st.lists(NAMES, max_size=2, unique=True),
        additionalProperties=st.one_of(st.booleans(), part),
    )


def wider(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    choices = st.lists(part, min_size=1, max_size=2)
    arrays = typed("array", items=part, minItems=st.integers(0, 2), maxItems=SMALL,
        prefixItems=choices)  # fmt: skip
    return st.one_of(objects(part), arrays, choices.map(lambda each: {"anyOf": each}))


PARTS = st.recursive(LEAVES, wider, max_leaves=6)
SCHEMAS = st.builds(
    lambda schema, x, y: {**schema, "$defs": {"x": x, "y": y}}, objects(PARTS), PARTS, LEAVES
)


@cache
def vocabulary() -> Vocabulary:
    return byte_vocabulary([])


async def calls_of(schema: dict[str, Any], format: str, path: str | None) -> list[dict[str, Any]]:
    """Inputs of a few calls that were drawn blindly. Raises InvalidRequest."""
    tools = {"tool": CallableTool(schema, is_held=True)}
    strict = {} if path is None else {"tool": path}
    constraint = Constraint(must_call=["tool"], is_one_call=True, strict=strict)
    grammars, inputs = Grammars(vocabulary(), format), []
    try:
        for seed in range(3):
            hook = await grammars.hook(constraint, tools)
            assert hook is not None
            ids = drawn(hook, vocabulary(), seed, max_tokens=250)
            if ids[-1] in vocabulary().end_ids:
                ((_, text),) = read(vocabulary(), format, tools, ids).calls
                inputs.append(json.loads(text))
    finally:
        grammars.close()
    return inputs


@pytest.mark.parametrize("format", ["hermes", "qwen_xml"])
@settings(
    max_examples=30,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(schema=SCHEMAS)
def test_a_strict_tool_is_refused_by_place_or_called_as_its_schema_says(
    format: str, schema: dict[str, Any]
) -> None:
    try:
        inputs = asyncio.run(calls_of(schema, format, PATH))
    except InvalidRequest as error:
        inputs, place = [], error.path
        assert place.startswith(PATH)
    for each in inputs:
        jsonschema.validate(each, schema)


@pytest.mark.parametrize("format", ["hermes", "qwen_xml"])
@settings(
    max_examples=12,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(schema=SCHEMAS)
def test_an_ordinary_tool_is_never_refused_and_its_calls_are_objects(
    format: str, schema: dict[str, Any]
) -> None:
    for each in asyncio.run(calls_of(schema, format, None)):
        assert isinstance(each, dict)
