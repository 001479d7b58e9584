"""Thinking ends at its budget, to the id, and what follows is free."""

from __future__ import annotations

import pytest

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from minimsg.parsing.calls import CallableTool
from minimsg.parsing.thinking import ThinkingTags
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import drawn, ids_of, read, spell, write
from tests.constrain.schemas import SCHEMAS

TAGS, OPENED = ThinkingTags(), ThinkingTags(is_opened=True)
TOOLS = {"now": CallableTool()}


async def hook_of(
    grammars: MakeGrammars,
    vocabulary: Vocabulary,
    budget: int,
    tags: ThinkingTags,
    constraint: Constraint | None = None,
) -> TokenHook:
    made = constraint or Constraint()
    wanted = Constraint(schema=made.schema, thinking_budget=budget)
    hook = await grammars(vocabulary, "hermes").hook(wanted, {}, tags)
    assert hook is not None
    return hook


def closing(hook: TokenHook, vocabulary: Vocabulary) -> str:
    """What is forced from here on."""
    ids: list[int] = []
    while (id := hook.forced()) is not None and len(ids) < 100:
        ids.append(id)
        hook.advance(id)
    return spell(vocabulary, ids)


@pytest.mark.parametrize("kind", ["tokens", "text"])
@pytest.mark.parametrize("budget", [0, 1, 7])
async def test_the_closing_tag_is_forced_at_the_budget_and_nothing_after_it(
    plain: Vocabulary, tagged: Vocabulary, grammars: MakeGrammars, kind: str, budget: int
) -> None:
    vocabulary = tagged if kind == "tokens" else plain
    for tags, start in ((TAGS, "<think>"), (OPENED, "")):
        hook = await hook_of(grammars, vocabulary, budget, tags)
        for id in ids_of(vocabulary, start + "x" * budget):
            assert hook.forced() is None
            hook.advance(id)
        assert closing(hook, vocabulary) == "</think>"
        assert write(hook, vocabulary, "\n\nThe answer is <b>.") == ""
        assert hook.forced() is None


async def test_thinking_within_its_budget_is_left_alone(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_of(grammars, tagged, 5, TAGS)
    for id in ids_of(tagged, "<think>12345</think>" + "a" * 20):
        assert hook.forced() in (None, tagged.tokenizer.control["</think>"])
        hook.advance(id)
    assert hook.forced() is None


async def test_several_parts_of_thinking_share_one_budget(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_of(grammars, tagged, 6, TAGS)
    assert write(hook, tagged, "<think>1234</think>text<think>56") == ""
    assert closing(hook, tagged) == "</think>"
    assert write(hook, tagged, "more<think>") == ""
    assert closing(hook, tagged) == "</think>"


async def test_a_reply_that_does_not_think_has_no_use_for_a_budget(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_of(grammars, plain, 1, TAGS)
    assert write(hook, plain, "No thoughts at all.") == ""
    assert hook.forced() is None
    assert hook.mask() is None


async def test_a_tag_inside_a_call_is_no_thinking(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await grammars(tagged, "hermes").hook(Constraint(thinking_budget=2), TOOLS, TAGS)
    assert hook is not None
    call = '<tool_call>{"name": "now", "arguments": {"a": "'
    assert write(hook, tagged, call) == ""
    for byte in b"<think>1234":
        hook.advance(byte)
    assert hook.forced() is None


@pytest.mark.parametrize("kind", ["tokens", "text"])
async def test_thinking_is_cut_short_and_the_value_comes_all_the_same(
    plain: Vocabulary, tagged: Vocabulary, grammars: MakeGrammars, kind: str
) -> None:
    vocabulary = tagged if kind == "tokens" else plain
    constraint = Constraint(schema=SCHEMAS["bounds"])
    for seed in range(5):
        hook = await hook_of(grammars, vocabulary, 9, OPENED, constraint)
        ids = drawn(hook, vocabulary, seed)
        assert ids[-1] in vocabulary.end_ids
        said = read(vocabulary, "hermes", {}, ids, OPENED)
        assert said.text[:5] == '{"n":'
        assert len(ids_of(vocabulary, said.thinking)) <= 9


async def test_ids_that_were_taken_back_do_not_count(
    tagged: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_of(grammars, tagged, 4, TAGS)
    assert write(hook, tagged, "<think>123") == ""
    hook.rollback(2)
    assert write(hook, tagged, "abc") == ""
    close = tagged.tokenizer.control["</think>"]
    assert hook.forced() == close
    hook.advance(close)
    hook.rollback(1)
    assert hook.forced() == close
    hook.rollback(1)
    assert hook.forced() is None
