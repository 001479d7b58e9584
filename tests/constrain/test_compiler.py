"""Grammars are kept within a bound, and refused where they would cost too much."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from pydantic import JsonValue

from minimsg.constrain import lark
from minimsg.constrain.compiler import FIXED_BYTES, MAX_CHARACTERS, Compiler, is_too_large
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.risk import is_risky, problem_in_time
from minimsg.constrain.schema import Terms, made_ready
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.errors import InvalidRequest
from minimsg.parsing.calls import CallableTool
from minimsg.protocol.wire import JsonObject
from tests.constrain.conftest import MakeGrammars
from tests.constrain.schemas import SCHEMAS, of

ENDLESS: JsonObject = {
    "allOf": [{"type": "string", "pattern": f"(a|b)*a(a|b){{{n}}}"} for n in range(100)]
}


def grammar_of(schema: JsonObject) -> str:
    return lark.grammar(f"start: {lark.schema(made_ready(schema, Terms()))}\n")


def word(text: str) -> str:
    return f'start: "{text}"\n'


def test_the_cache_drops_what_was_asked_for_longest_ago(plain: Vocabulary) -> None:
    compiler = Compiler(plain, cache_bytes=3 * FIXED_BYTES + 9_000)
    for text in ("a", "b", "c"):
        compiler.matcher([word(text)])
    compiler.matcher([word("a")])
    compiler.matcher([word("d")])
    assert compiler.verdict(word("a")) == compiler.verdict(word("d")) == ""
    assert compiler.verdict(word("b")) is None
    assert compiler.num_bytes <= 3 * FIXED_BYTES + 9_000


def test_many_distinct_grammars_do_not_fill_the_memory(plain: Vocabulary) -> None:
    compiler = Compiler(plain, cache_bytes=20 * FIXED_BYTES)
    for n in range(300):
        compiler.matcher([word(f"word {n}")])
        compiler.refuse(word(f"bad {n}"), "no")
    assert compiler.num_bytes <= 20 * FIXED_BYTES


def test_a_grammar_that_is_not_taken_is_remembered_with_the_cause(plain: Vocabulary) -> None:
    compiler = Compiler(plain)
    text = grammar_of({"not": {}})
    assert compiler.verdict(text) is None
    assert compiler.problem(text) == 'Unimplemented keys: ["not"]'
    assert compiler.verdict(text) == 'Unimplemented keys: ["not"]'


def test_a_schema_that_multiplies_itself_is_too_large(plain: Vocabulary) -> None:
    choices: list[JsonValue] = [
        {"anyOf": [{"properties": {f"p{i}{j}": {}}} for j in range(6)]} for i in range(8)
    ]
    assert is_too_large(Compiler(plain).problem(grammar_of({"allOf": choices})))


def test_grammars_that_are_too_large_together_are_refused_before_they_are_compiled(
    plain: Vocabulary,
) -> None:
    words = [word("x" * MAX_CHARACTERS)]
    with pytest.raises(InvalidRequest, match="too complex"):
        Compiler(plain).matcher(words)


@pytest.mark.parametrize("name", SCHEMAS)
def test_ordinary_schemas_are_compiled_in_place(name: str) -> None:
    assert not is_risky(SCHEMAS[name])


@pytest.mark.parametrize(
    "schema",
    [
        ENDLESS,
        {"items": {"type": "string", "pattern": "a"}},
        {"patternProperties": {"^a": {}}},
        {"$ref": "#/$defs/a", "minLength": 1},
        {"properties": {f"p{n}": {} for n in range(400)}},
    ],
)
def test_schemas_that_may_take_for_ever_are_told_by_what_they_say(schema: JsonObject) -> None:
    assert is_risky(schema)


async def test_a_compilation_without_end_is_ended_with_its_process() -> None:
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        await problem_in_time(grammar_of(ENDLESS), deadline_s=1.5)
    assert time.monotonic() - start < 10


async def test_another_process_says_the_same_of_a_grammar() -> None:
    good: JsonObject = {"type": "string", "pattern": "^a+$"}
    bad: JsonObject = {"type": "string", "pattern": "^(?!a)"}
    verdicts = await asyncio.gather(*(problem_in_time(grammar_of(each)) for each in (good, bad)))
    assert verdicts[0] == ""
    assert verdicts[1].startswith("pattern '^(?!a)': look-around")


async def test_a_schema_without_end_is_refused_if_strict_and_else_left_out(
    plain: Vocabulary, grammars: MakeGrammars, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(text: str) -> str:
        raise TimeoutError

    monkeypatch.setattr("minimsg.constrain.checking.problem_in_time", never)
    tools = {"tool": CallableTool(of({"a": ENDLESS}, "a"))}
    strict = Constraint(must_call=["tool"], strict={"tool": "tools.0.custom.input_schema"})
    with pytest.raises(InvalidRequest) as error:
        await grammars(plain, "json").hook(strict, tools)
    words = "tools.0.custom.input_schema: Schema is too complex for compilation."
    assert error.value.message == words
    assert await grammars(plain, "json").hook(Constraint(must_call=["tool"]), tools)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"q": {"type": "string", "pattern": "^(?!x).*$"}}},
        {"type": "object", "properties": {"q": {"$ref": "https://example.com/q"}}},
        {"type": "object", "properties": {"q": {"type": "string", "minLength": 10**12}}},
        {"type": "object", "properties": {"q": {"type": "string", "format": "color"}}},
        {"type": "object", "properties": {"q": {"not": {"type": "null"}}}},
        {"type": "object", "properties": {"q": {"$ref": "#"}}},
        {"type": "object", "properties": {"q": False}, "required": ["q"]},
    ],
)
@pytest.mark.parametrize("format", ["hermes", "qwen_xml"])
async def test_a_tool_that_is_not_strict_may_have_any_schema(
    plain: Vocabulary, grammars: MakeGrammars, schema: JsonObject, format: str
) -> None:
    tools = {"tool": CallableTool(json.loads(json.dumps(schema)))}
    for constraint in (Constraint(), Constraint(must_call=["tool"])):
        assert await grammars(plain, format).hook(constraint, tools)


async def test_a_deadline_that_a_busy_machine_missed_is_not_remembered(
    plain: Vocabulary, grammars: MakeGrammars, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_asked = 0

    async def late_at_first(text: str) -> str:
        nonlocal num_asked
        num_asked += 1
        if num_asked <= 2:  # both readings
            raise TimeoutError
        return ""

    monkeypatch.setattr("minimsg.constrain.checking.problem_in_time", late_at_first)
    schema = of({"late": {"type": "string", "pattern": "^a+$"}}, "late")
    strict = Constraint(must_call=["tool"], strict={"tool": "tools.0.custom.input_schema"})
    tools = {"tool": CallableTool(schema)}
    with pytest.raises(InvalidRequest, match="too complex"):
        await grammars(plain, "json").hook(strict, tools)
    assert await grammars(plain, "json").hook(strict, tools)
