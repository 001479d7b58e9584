"""A reply that must be a JSON value of a schema is one, and nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from minimsg.builtin import TURN_END
from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from minimsg.errors import InvalidRequest
from minimsg.parsing.calls import CallableTool
from minimsg.parsing.thinking import ThinkingTags
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import allowed_ids, drawn, may_come, read, spell, write
from tests.constrain.schemas import SCHEMAS

STRING = re.compile(r'"(\\.|[^"\\])*"')
TOOLS = {"now": CallableTool({"type": "object", "properties": {"zone": {"type": "integer"}}})}


async def held_to(
    grammars: MakeGrammars, vocabulary: Vocabulary, schema: dict[str, Any], **more: Any
) -> TokenHook:
    constraint = Constraint(schema=schema)
    hook = await grammars(vocabulary, "hermes").hook(constraint, more.pop("tools", {}), **more)
    assert hook is not None
    return hook


@pytest.mark.parametrize("name", SCHEMAS)
async def test_blind_choices_make_one_compact_value(
    plain: Vocabulary, grammars: MakeGrammars, name: str
) -> None:
    num_ended = 0
    for seed in range(4):
        hook = await held_to(grammars, plain, SCHEMAS[name])
        ids = drawn(hook, plain, seed)
        if ids[-1] == TURN_END:
            num_ended += 1
            text = spell(plain, ids[:-1])
            jsonschema.validate(json.loads(text), SCHEMAS[name])
            assert not set(STRING.sub("", text)) & set(" \t\n\r")
    assert num_ended


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": ["array", "null"], "items": {"type": "boolean"}},
        {"const": "é"},
    ],
)
async def test_a_value_need_not_be_an_object(
    plain: Vocabulary, grammars: MakeGrammars, schema: dict[str, Any]
) -> None:
    ids = drawn(await held_to(grammars, plain, schema), plain, 1)
    jsonschema.validate(json.loads(spell(plain, ids[:-1])), schema)


async def test_the_turn_ends_where_the_value_may_end_and_has_to_where_nothing_can_follow(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await held_to(grammars, plain, {"type": "integer"})
    assert not may_come(hook, TURN_END)
    hook.advance(ord("7"))
    assert may_come(hook, TURN_END)
    assert hook.forced() is None
    hook = await held_to(grammars, plain, SCHEMAS["nothing"])
    assert write(hook, plain, "{}") == ""
    assert hook.forced() == TURN_END


async def test_required_properties_come_first_in_their_order_and_others_after(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    number = {"type": "integer"}
    schema = {
        "type": "object",
        "properties": {"a": number, "b": number, "c": number, "d": number},
        "required": ["d", "b"],
    }
    for text, rest in (
        ('{"b":1,"d":2,"a":3,"c":4}', ""),
        ('{"b":1,"d":2,"c":4}', ""),
        ('{"d":', 'd":'),
        ('{"b":1,"d":2,"c":4,"a"', ',"a"'),
        ('{"b":1,"d":2,"e', "e"),
        ('{"b":1}', "}"),
        ('{"b": 1', " 1"),
    ):
        hook = await held_to(grammars, plain, schema)
        assert write(hook, plain, text) == rest


@pytest.mark.parametrize("tag", ["token", "text"])
async def test_thinking_may_come_before_the_value_and_does_not_end_the_turn(
    plain: Vocabulary, tagged: Vocabulary, grammars: MakeGrammars, tag: str
) -> None:
    vocabulary, thinking = (tagged if tag == "token" else plain), ThinkingTags()
    hook = await held_to(grammars, vocabulary, SCHEMAS["an integer"], thinking=thinking)
    assert write(hook, vocabulary, '{"n":1}') == ""
    hook = await held_to(grammars, vocabulary, SCHEMAS["an integer"], thinking=thinking)
    assert write(hook, vocabulary, '<think>\nIs it {"n": 2}? "') == ""
    assert not may_come(hook, TURN_END)
    assert write(hook, vocabulary, "</think>\n\nNo") == "No"
    assert write(hook, vocabulary, '{"n":1}') == ""


async def test_thinking_that_the_prompt_opened_ends_before_the_value(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    thinking = ThinkingTags(is_opened=True)
    hook = await held_to(grammars, tagged, SCHEMAS["an integer"], thinking=thinking)
    assert write(hook, tagged, '{"n":1}, I think.</think>{"n":2}') == ""
    assert hook.forced() == TURN_END


async def test_a_model_with_tools_may_call_one_before_it_answers(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    for text in ('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', '{"n":1}'):
        hook = await held_to(grammars, plain, SCHEMAS["an integer"], tools=TOOLS)
        assert write(hook, plain, text) == ""
        assert may_come(hook, TURN_END)


async def test_a_number_is_one_that_every_reader_takes(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    schema = {"type": "number"}
    for text, rest in (
        ("1e999", "9"),
        ("-1.5e-09", ""),
        ("1" * 40, "1" * 9),
        ("0." + "3" * 50, "3" * 20),
    ):
        hook = await held_to(grammars, plain, schema)
        assert write(hook, plain, text) == rest


async def test_a_string_ends_no_turn_and_holds_no_control_token(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await held_to(grammars, tagged, {"type": "string"})
    assert write(hook, tagged, '"a') == ""
    allowed = allowed_ids(hook)
    assert allowed is not None
    assert not set(allowed) & set(tagged.tokenizer.control.values())
    assert write(hook, tagged, "b</think>") == "</think>"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "uniqueItems": True}, ": 'uniqueItems' cannot be enforced; leave it"),
        ({"type": "object", "properties": {"a": {"not": {}}}}, ".properties.a: 'not' cannot be"),
        ({"if": {}, "then": {}}, ": 'if' cannot be enforced"),
        ({"anyOf": [{"type": "null"}, {"oneOf": [{"type": "number"}, {"type": "integer"}]}]},
            ".anyOf.1: 'oneOf' of overlapping alternatives cannot be enforced"),
        ({"type": "string", "pattern": "^(?!x)"}, ": this pattern cannot be enforced"),
        ({"type": "array", "items": {"type": "string", "format": "color"}},
            ".items: format 'color' cannot be enforced"),
        ({"$ref": "https://example.com/s"}, ": '$ref' to 'https://example.com/s' cannot be"),
        ({"$ref": "#/$defs/x"}, ": '$ref' to '#/$defs/x' cannot be enforced"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, ": cannot be enforced: Unsatisfiable"),
    ],
)  # fmt: skip
async def test_a_schema_that_cannot_be_enforced_is_refused_by_place_and_cause(
    plain: Vocabulary, grammars: MakeGrammars, schema: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        await held_to(grammars, plain, schema)
    assert error.value.message.startswith(f"output_config.format.schema{message}")


async def test_said_by_the_parser_it_is_text(plain: Vocabulary, grammars: MakeGrammars) -> None:
    hook = await held_to(grammars, plain, SCHEMAS["an integer"])
    ids = drawn(hook, plain, 5)
    assert json.loads(read(plain, "hermes", {}, ids).text).keys() == {"n"}
