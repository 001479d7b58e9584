"""JSON that is asked for has one form: white space cannot go on for ever."""

from __future__ import annotations

import re

import pytest

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.parsing.calls import CallableTool
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import drawn, spell
from tests.constrain.schemas import SCHEMAS

# A string as JSON and as a parameter in a tag has it: white space in one is the model's own.
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|<parameter=\w+>\n(?![\[{"]).*?\n</parameter>', re.DOTALL)


@pytest.mark.parametrize("name", SCHEMAS)
async def test_a_format_is_compact(plain: Vocabulary, grammars: MakeGrammars, name: str) -> None:
    hook = await grammars(plain, "none").hook(Constraint(schema=SCHEMAS[name]), {})
    assert hook is not None
    for seed in range(3):
        ids = drawn(hook, plain, seed, max_tokens=300)
        assert not re.search(r"\s", outside(plain, ids))
        hook.rollback(len(ids))


@pytest.mark.parametrize("name", ["nested twice", "lists in a list", "itself", "an open map"])
@pytest.mark.parametrize("format", ["hermes", "json", "llama_json", "qwen_xml"])
async def test_a_forced_call_has_one_white_space_at_a_time(
    plain: Vocabulary, grammars: MakeGrammars, format: str, name: str
) -> None:
    tools = {"tool": CallableTool(SCHEMAS[name])}
    constraint = Constraint(must_call=["tool"], is_one_call=True)
    hook = await grammars(plain, format).hook(constraint, tools)
    assert hook is not None
    for seed in range(3):
        ids = drawn(hook, plain, seed, max_tokens=300)
        assert not re.search(r"\s\s", outside(plain, ids))
        hook.rollback(len(ids))


def outside(vocabulary: Vocabulary, ids: list[int]) -> str:
    """The text without its strings, also one that was cut."""
    said = TEXT.sub('""', spell(vocabulary, ids).replace("<|im_end|>", ""))
    return said if ids[-1] in vocabulary.end_ids else re.sub(r'"[^"]*$', "", said)
