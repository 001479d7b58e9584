"""Schemas that grammars hold badly: held all the same, refused by place, or left out."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from minimsg.errors import InvalidRequest
from minimsg.parsing.calls import CallableTool
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import allowed_ids, drawn, read, spell, write
from tests.constrain.schemas import of

INTEGER = {"type": "integer"}
TEXT = {"type": "string"}
PATH = "tools.0.custom.input_schema"
FORMATS = ["hermes", "qwen_xml"]


def nested(depth: int) -> dict[str, Any]:
    return of({"a": nested(depth - 1)}, "a") if depth else INTEGER


def defined(**definitions: Any) -> dict[str, Any]:
    return of({"a": {"$ref": "#/$defs/a"}}, "a", **{"$defs": definitions})


AWKWARD: dict[str, dict[str, Any]] = {
    "a factor": of({"a": {"type": "integer", "multipleOf": 7}}, "a"),
    "a number that is hardly one": of(
        {"a": {"type": "number", "minimum": 1e-300, "maximum": 1e-290}}, "a"
    ),
    "a number of 300 digits": of({"a": {"const": 1e300}}, "a"),
    "forty objects": nested(40),
    "itself without end": of({"c": {"$ref": "#"}}, "c"),
    "a circle of references": defined(a={"$ref": "#/$defs/b"}, b={"$ref": "#/$defs/a"}),
    "an anchor": of({"a": {"$ref": "#x"}}, "a", **{"$defs": {"x": {"$anchor": "x", **INTEGER}}}),
    "an escaped reference": of({"a": {"$ref": "#/$defs/a~1b%20c"}}, "a",
        **{"$defs": {"a/b c": INTEGER}}),
    "a bound beyond reason": of({"a": {"type": "string", "maxLength": 10**9}}, "a"),
    "a required property that none may be": of({"a": INTEGER}, "z", additionalProperties=False),
    "a required property of a kind": of({"a": INTEGER}, "z", additionalProperties=INTEGER),
    "no property but one is required": {"type": "object", "required": ["z"]},
    "control characters": of({"a": {"const": "a\0\x1f\x7f\tb"}}, "a"),
    "a choice of control characters": of({"a": {"enum": ["\0", "\x01", "\n"]}}, "a"),
    "a pattern of control characters": of(
        {"a": {"type": "string", "pattern": "^\\x00\\x01$"}}, "a"),
    "a control character in a name": of({"a\0b": INTEGER}, "a\0b"),
    "values of another type": of({"a": {"type": "string", "enum": ["x", 1, None]}}, "a"),
    "values of whole numbers": of({"a": {"type": "integer", "enum": ["x", 1.0, 2, 2.5]}}, "a"),
    "a choice and a value": of({"a": {"enum": ["x", "y"], "const": "y"}}, "a"),
    "parts of one string": of({"a": {"allOf": [TEXT, {"maxLength": 4}]}}, "a"),
    "a pattern": of({"a": {"type": "string", "pattern": "^[a-z]{3}$"}}, "a"),
}  # fmt: skip


async def hook_for(
    grammars: MakeGrammars, vocabulary: Vocabulary, schema: dict[str, Any], format: str, kind: str
) -> TokenHook:
    """Raises InvalidRequest. `kind`: of the constraint."""
    tools = {} if kind == "format" else {"tool": CallableTool(schema)}
    strict = {"tool": PATH} if kind == "strict" else {}
    constraint = Constraint(must_call=["tool"], is_one_call=True, strict=strict)
    if kind == "format":
        constraint = Constraint(schema=schema)
    hook = await grammars(vocabulary, format).hook(constraint, tools)
    assert hook is not None
    return hook


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", AWKWARD)
async def test_an_ordinary_tool_is_called_whatever_its_schema(
    plain: Vocabulary, grammars: MakeGrammars, name: str, format: str
) -> None:
    tools = {"tool": CallableTool(AWKWARD[name])}
    for seed in range(3):
        hook = await hook_for(grammars, plain, AWKWARD[name], format, "ordinary")
        ids = drawn(hook, plain, seed, max_tokens=400)
        if ids[-1] in plain.end_ids:
            ((_, input),) = read(plain, format, tools, ids).calls
            assert isinstance(json.loads(input), dict)


@pytest.mark.parametrize("kind", ["format", "strict", "strict in tags"])
@pytest.mark.parametrize("name", AWKWARD)
async def test_what_the_client_counts_on_is_held_or_refused_where_it_stands(
    plain: Vocabulary, grammars: MakeGrammars, name: str, kind: str
) -> None:
    schema, format = AWKWARD[name], "qwen_xml" if kind.endswith("tags") else "hermes"
    tools = {"tool": CallableTool(schema)}
    refused = set()
    for seed in range(3):
        try:
            hook = await hook_for(grammars, plain, schema, format, kind.split()[0])
        except InvalidRequest as error:
            refused.add(error.path.removesuffix(".properties.a"))
            break
        ids = drawn(hook, plain, seed, max_tokens=400)
        if ids[-1] in plain.end_ids:
            value = spell(plain, ids[:-1])
            if kind != "format":
                ((_, value),) = read(plain, format, tools, ids).calls
            jsonschema.validate(json.loads(value), schema)
    assert refused <= {PATH if kind != "format" else "output_config.format.schema"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("control characters", '{"a":"a\\u0000\\u001f\\u007f\\tb"}'),
        ("forty objects", '{"a":' * 40 + "1" + "}" * 40),
        ("a required property of a kind", '{"z":1}'),
        ("an escaped reference", '{"a":1}'),
    ],
)
async def test_what_is_awkward_and_can_be_held_is_held(
    plain: Vocabulary, grammars: MakeGrammars, name: str, value: str
) -> None:
    hook = await hook_for(grammars, plain, AWKWARD[name], "hermes", "format")
    assert write(hook, plain, value) == ""
    assert hook.forced() in plain.end_ids


async def test_numbers_that_cannot_end_where_they_should_go_on_until_they_can(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, AWKWARD["a factor"], "hermes", "format")
    assert write(hook, plain, '{"a":1' + "0" * 30) == ""
    assert ord("}") not in (allowed_ids(hook) or [])
    hook.advance(ord("4"))
    hook.rollback(2)
    assert write(hook, plain, "04") == ""


async def test_a_long_string_is_no_longer_bounded_where_its_bound_costs_too_much(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    schema = AWKWARD["a bound beyond reason"]
    with pytest.raises(InvalidRequest, match="too complex"):
        await hook_for(grammars, plain, schema, "hermes", "strict")
    hook = await hook_for(grammars, plain, schema, "hermes", "ordinary")
    text = (
        '<tool_call>\n{"name": "tool", "arguments": {"a": "' + "word " * 3000 + '"}}\n</tool_call>'
    )
    assert write(hook, plain, text) == ""


async def test_a_bound_that_is_taken_holds_to_its_end(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    schema = {"type": "array", "items": {"type": "string", "maxLength": 4000}}
    hook = await hook_for(grammars, plain, schema, "hermes", "format")
    word = "abcde" * 800
    assert write(hook, plain, f'["{word}","{word[1:]}"]') == ""
