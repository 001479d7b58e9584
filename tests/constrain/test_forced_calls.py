"""A reply that must call is a call: whatever is drawn, in every format, of every schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.errors import InvalidRequest
from minimsg.parsing.calls import CallableTool
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import Said, drawn, read
from tests.constrain.schemas import SCHEMAS, of

FORMATS = ["hermes", "qwen_xml", "llama_json", "json"]


def assert_valid(said: Said, schemas: dict[str, Any]) -> None:
    assert said.text == ""
    assert said.calls
    for name, text in said.calls:
        jsonschema.validate(json.loads(text), schemas[name])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", SCHEMAS)
async def test_blind_choices_make_a_valid_call(
    plain: Vocabulary, tagged: Vocabulary, grammars: MakeGrammars, format: str, name: str
) -> None:
    tools = {"tool": CallableTool(SCHEMAS[name])}
    constraint = Constraint(must_call=["tool"], is_one_call=True)
    num_ended = 0
    for vocabulary in (plain, tagged):
        for seed in range(3):
            hook = await grammars(vocabulary, format).hook(constraint, tools)
            assert hook is not None
            ids = drawn(hook, vocabulary, seed)
            if ids[-1] not in vocabulary.end_ids:
                continue
            num_ended += 1
            said = read(vocabulary, format, tools, ids)
            assert_valid(said, {"tool": SCHEMAS[name]})
            assert len(said.calls) == 1
    assert num_ended >= 3


TWO = {"tool": CallableTool(SCHEMAS["a choice"]), "now": CallableTool(SCHEMAS["nothing"])}


@pytest.mark.parametrize("format", FORMATS)
async def test_any_of_several_tools_may_be_called_and_again_unless_only_one_call_is_wanted(
    plain: Vocabulary, grammars: MakeGrammars, format: str
) -> None:
    counts: dict[bool, set[int]] = {True: set(), False: set()}
    names = set()
    for is_one_call in counts:
        constraint = Constraint(must_call=list(TWO), is_one_call=is_one_call)
        for seed in range(8):
            hook = await grammars(plain, format).hook(constraint, TWO)
            assert hook is not None
            said = read(plain, format, TWO, drawn(hook, plain, seed))
            assert_valid(said, {name: dict(tool.input_schema) for name, tool in TWO.items()})
            counts[is_one_call].add(len(said.calls))
            names |= {name for name, _ in said.calls}
    assert counts[True] == {1}
    assert max(counts[False]) > 1
    assert names == set(TWO)


@pytest.mark.parametrize("format", ["hermes", "qwen_xml"])
@pytest.mark.parametrize("name", ["a choice", "nested twice", "much"])
async def test_the_real_vocabulary_makes_valid_calls_as_well(
    qwen3: Vocabulary, grammars: MakeGrammars, format: str, name: str
) -> None:
    tools = {"tool": CallableTool(SCHEMAS[name])}
    constraint = Constraint(must_call=["tool"], is_one_call=True)
    hook = await grammars(qwen3, format).hook(constraint, tools)
    assert hook is not None
    ids = drawn(hook, qwen3, seed=3, max_tokens=400)
    assert ids[-1] in qwen3.end_ids
    assert ids[0] == qwen3.tokenizer.control["<tool_call>"]
    assert_valid(read(qwen3, format, tools, ids), {"tool": SCHEMAS[name]})


async def test_a_model_without_a_form_of_calls_cannot_be_made_to_call(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    forced = Constraint(must_call=["now"])
    with pytest.raises(InvalidRequest, match="are not supported for this model"):
        await grammars(plain, "none").hook(forced, TWO)
    strict = Constraint(strict={"now": "tools.1.custom.input_schema"})
    with pytest.raises(InvalidRequest, match=r"tools\.1\.custom\.input_schema: strict tools are"):
        await grammars(plain, "none").hook(strict, TWO)
    assert await grammars(plain, "none").hook(Constraint(), TWO) is None


async def test_what_a_strict_tool_asks_in_vain_is_refused_where_it_stands(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    schema = of({"q": {"type": "array", "uniqueItems": True}})
    tools = {"tool": CallableTool(schema)}
    path = "tools.4.custom.input_schema"
    for constraint in (
        Constraint(strict={"tool": path}),
        Constraint(strict={"tool": path}, must_call=["tool"]),
    ):
        with pytest.raises(InvalidRequest) as error:
            await grammars(plain, "hermes").hook(constraint, tools)
        message = f"{path}.properties.q: 'uniqueItems' cannot be enforced; leave it out"
        assert error.value.message == message
