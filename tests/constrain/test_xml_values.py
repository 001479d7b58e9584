"""Parameters in tags: what stands there is read as a value that the schema allows, or refused."""

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
from tests.constrain.driving import drawn, ids_of, read, write
from tests.constrain.schemas import of

TEXT = {"type": "string"}
NULL = {"type": "null"}
LIST = {"type": "array", "items": {"type": "integer"}, "maxItems": 2}
PATH = "tools.0.custom.input_schema"

VALUES: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "a string": (TEXT, ["x", "", "null", '"q"', " a\n\nb ", "</par", "5"], []),
    "a short string": (
        {"type": "string", "minLength": 2, "maxLength": 4}, ["ab", "é🙂é"], ["a", "abcde"]),
    "words": ({"enum": ["red", "a b"]}, ["red", "a b"], ["blue", "reda", "re"]),
    "an integer": ({"type": "integer"}, ["5", "-12"], ["x", "1.5", '"5"', "1e999"]),
    "a flag": ({"type": "boolean"}, ["true", "false"], ["True", "yes"]),
    "a list": (LIST, ["[]", "[1, 2]"], ["[1, 2, 3]", '["a"]', "1"]),
    "a string or null": ({"anyOf": [TEXT, NULL]}, ["null", "x", "5", "[1]"], []),
    "a short string or null": (
        {"type": ["string", "null"], "maxLength": 3}, ["null", "ab", "12"], ["abcd"]),
    "a string or a list": (
        {"anyOf": [TEXT, LIST]}, ["abc", "[1]", "a [1]"], ['["a"]', "[x", " [x"]),
    "a string or a small number": (
        {"anyOf": [TEXT, {"type": "integer", "maximum": 9}]}, ["abc", "7", "a1"], ["70", "7a"]),
    "a word or a number": ({"enum": ["a", 7]}, ["a", "7"], ["8", "b"]),
    "a string or true": ({"anyOf": [TEXT, {"const": True}]}, ["true", "truth"], ["false", "False"]),
    "a reference": ({"$ref": "#/$defs/color"}, ["red"], ["blue"]),
    "anything": ({}, ["x", "5", "{"], []),
}  # fmt: skip
DEFINITIONS = {"$defs": {"color": {"enum": ["red", "green"]}}}


async def strict_hook(
    grammars: MakeGrammars, vocabulary: Vocabulary, schema: dict[str, Any]
) -> TokenHook:
    constraint = Constraint(must_call=["tool"], is_one_call=True, strict={"tool": PATH})
    hook = await grammars(vocabulary, "qwen_xml").hook(constraint, {"tool": CallableTool(schema)})
    assert hook is not None
    return hook


def call(value: str) -> str:
    parameter = f"<parameter=p>\n{value}\n</parameter>\n"
    return f"<tool_call>\n<function=tool>\n{parameter}</function>\n</tool_call>"


@pytest.mark.parametrize("name", VALUES)
async def test_what_may_stand_in_a_parameter_is_what_the_schema_allows(
    plain: Vocabulary, grammars: MakeGrammars, name: str
) -> None:
    part, good, bad = VALUES[name]
    schema = of({"p": part}, "p", **DEFINITIONS)
    for value in good:
        hook = await strict_hook(grammars, plain, schema)
        assert write(hook, plain, call(value)) == ""
        tools = {"tool": CallableTool(schema)}
        ((_, input),) = read(plain, "qwen_xml", tools, ids_of(plain, call(value))).calls
        jsonschema.validate(json.loads(input), schema)
    for value in bad:
        hook = await strict_hook(grammars, plain, schema)
        assert write(hook, plain, call(value)) != ""


@pytest.mark.parametrize("name", VALUES)
async def test_whatever_is_drawn_is_read_as_a_value_of_the_schema(
    plain: Vocabulary, grammars: MakeGrammars, name: str
) -> None:
    schema = of({"p": VALUES[name][0]}, "p", **DEFINITIONS)
    tools = {"tool": CallableTool(schema)}
    num_ended = 0
    for seed in range(6):
        ids = drawn(await strict_hook(grammars, plain, schema), plain, seed)
        if ids[-1] in plain.end_ids:
            num_ended += 1
            ((_, input),) = read(plain, "qwen_xml", tools, ids).calls
            jsonschema.validate(json.loads(input), schema)
    assert num_ended >= 3


async def test_parameters_come_in_order_and_optional_ones_may_be_left_out(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    schema = of({"a": TEXT, "b": {"type": "integer"}, "<c>": TEXT}, "b")
    start = "<tool_call>\n<function=tool>\n"
    b, a = "<parameter=b>\n1\n</parameter>\n", "<parameter=a>\nx\n</parameter>\n"
    for text, rest in (
        (f"{b}{a}</function>", ""),
        (f"{b}</function>", ""),
        (f"{a}{b}", f"a{a[12:]}{b}"),
        (f"{b}{a}{a}", f"parameter=a>{a[13:]}"),
    ):
        assert write(await strict_hook(grammars, plain, schema), plain, start + text) == rest


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (of({"p": {"type": "string", "pattern": "^a"}}), "pattern, in properties.p"),
        (of({"p": {"type": "string", "format": "date"}}), "format, in properties.p"),
        (of({"p": {"anyOf": [TEXT, NULL], "minLength": 1}}), "anyOf, minLength"),
        (of({"p": {"type": "integer", "$ref": "#/properties/q"}, "q": TEXT}), "reference"),
        (of({"<p>": TEXT}, "<p>"), "a property called '<p>'"),
        (of({"p": TEXT}, minProperties=1), "minProperties at the top level"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "additionalProperties"),
    ],
)  # fmt: skip
async def test_a_strict_schema_that_tags_cannot_write_is_refused(
    plain: Vocabulary, grammars: MakeGrammars, schema: dict[str, Any], what: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        await strict_hook(grammars, plain, schema)
    assert error.value.path == PATH
    assert what in error.value.why
    for constraint in (Constraint(must_call=["tool"]), Constraint()):
        tools = {"tool": CallableTool(schema)}
        assert await grammars(plain, "qwen_xml").hook(constraint, tools)
