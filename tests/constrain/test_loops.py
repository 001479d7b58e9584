"""A reply that goes in circles is led out, at a whole item, and only then."""

from __future__ import annotations

import re
from typing import Any

import pytest

from minimsg.constrain.constraint import Constraint
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import TokenHook
from tests.constrain.conftest import MakeGrammars
from tests.constrain.driving import allowed_ids, ids_of, write
from tests.constrain.schemas import of

TEXTS = of({"a": {"type": "array", "items": {"type": "string"}}}, "a")
NUMBERS = of({"a": {"type": "array", "items": {"type": "number"}}}, "a")


async def hook_for(
    grammars: MakeGrammars, plain: Vocabulary, schema: dict[str, Any], max_tokens: int = 1
) -> TokenHook:
    hook = await grammars(plain, "hermes").hook(
        Constraint(schema=schema, max_tokens=max_tokens), {}
    )
    assert hook is not None
    return hook


async def test_a_sentence_that_is_said_again_and_again_ends_its_string_after_a_word(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, TEXTS)
    rest = write(hook, plain, '{"a":["' + "so it is " * 40)
    assert allowed_ids(hook) == [ord('"')]
    assert rest.startswith(" ")
    assert 160 <= 9 * 40 - len(rest) < 180
    assert write(hook, plain, '","and') == ',"and'
    assert write(hook, plain, "]}") == ""


async def test_a_list_of_objects_is_ended_token_by_token(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    item = of({"b": {"type": "string"}}, "b")
    hook = await hook_for(grammars, plain, of({"a": {"type": "array", "items": item}}, "a"))
    rest = write(hook, plain, '{"a":[' + '{"b":"same"},' * 40)
    assert rest.startswith(',{"b"')
    assert allowed_ids(hook) == [ord("]")]
    assert write(hook, plain, "]}") == ""


async def test_digits_that_repeat_in_a_string_end_it_too(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, TEXTS)
    assert write(hook, plain, '{"a":["' + "28." * 90) != ""
    assert allowed_ids(hook) == [ord('"')]


async def test_an_item_that_comes_again_and_again_ends_its_list(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, TEXTS)
    rest = write(hook, plain, '{"a":[' + '"same",' * 40)
    assert allowed_ids(hook) == [ord("]")]
    assert rest.startswith(',"same"')
    assert 160 <= 7 * 40 - len(rest) < 180


@pytest.mark.parametrize(
    "text",
    [
        '{"a":["' + "so it is " * 7,
        '{"a":["' + "=" * 100,
        '{"a":["' + "".join(f"line {n}, " for n in range(40)),
        '{"a":[' + '"same",' * 7 + '"same"',
    ],
)
async def test_a_few_times_are_no_circle(
    plain: Vocabulary, grammars: MakeGrammars, text: str
) -> None:
    hook = await hook_for(grammars, plain, TEXTS)
    assert write(hook, plain, text) == ""
    assert len(allowed_ids(hook) or []) > 1


async def test_a_grid_of_numbers_is_no_circle(plain: Vocabulary, grammars: MakeGrammars) -> None:
    hook = await hook_for(grammars, plain, NUMBERS)
    assert write(hook, plain, '{"a":[' + "0," * 200 + "0") == ""
    assert len(allowed_ids(hook) or []) > 1


async def test_a_circle_that_was_taken_back_is_none(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, TEXTS)
    write(hook, plain, '{"a":[' + '"same",' * 40)
    hook.rollback(7)
    assert write(hook, plain, ',"diff",' + '"same",' * 20) == ""


@pytest.mark.parametrize("text", ['{"a":["' + "0" * 280, '{"a":[' + '"same",' * 40])
async def test_what_repeats_is_left_alone_while_there_are_tokens_for_it(
    plain: Vocabulary, grammars: MakeGrammars, text: str
) -> None:
    assert write(await hook_for(grammars, plain, TEXTS, max_tokens=512), plain, text) == ""
    hook = await hook_for(grammars, plain, TEXTS, max_tokens=240)
    rest = write(hook, plain, text)
    assert 210 <= len(text) - len(rest) < 220


async def test_a_circle_that_was_taken_back_does_not_bring_the_end_nearer(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, TEXTS, max_tokens=400)
    zeros = '{"a":["' + "0" * 340
    for _ in range(3):
        assert write(hook, plain, zeros) == ""
        hook.rollback(len(zeros))


LINES = of({"lines": {"type": "array", "items": of({"item": {"type": "string"},
    "price": {"type": "number"}}, "item", "price")}, "total": {"type": "number"}},
    "lines", "total")  # fmt: skip


def counted(prices: list[int]) -> str:
    return ",".join(f'{{"item":"1.20","price":{price}.00}}' for price in prices)


async def test_items_that_do_no_more_than_count_are_ended_near_the_end_only(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    text = '{"lines":[' + counted(list(range(1, 15)))
    hook = await hook_for(grammars, plain, LINES, max_tokens=450)
    rest = write(hook, plain, f"{text},")
    assert rest == ","
    assert allowed_ids(hook) == [ord("]")]
    assert write(hook, plain, '],"total":12.5}') == ""
    hook = await hook_for(grammars, plain, LINES, max_tokens=512)
    assert write(hook, plain, f'{text}],"total":12.5}}') == ""


async def test_a_table_of_different_numbers_is_no_circle(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    text = '{"lines":[' + counted([n * n for n in range(1, 40)])
    hook = await hook_for(grammars, plain, LINES, max_tokens=450)
    assert write(hook, plain, f"{text},") == ""


async def test_a_reply_that_went_in_circles_is_brought_to_its_end(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    steps = of({"steps": {"type": "array", "items": of({"number": {"type": "integer"},
        "do": {"type": "string"}}, "number", "do")}}, "steps")  # fmt: skip
    hook = await hook_for(grammars, plain, steps, max_tokens=512)
    text = '{"steps":[{"number":1,"do":"Boil water.' + " Boil the tea." * 40
    rest = write(hook, plain, text)
    assert 448 <= len(text) - len(rest) < 448 + len(" Boil the tea.")
    assert write(hook, plain, '"}') == ""
    assert allowed_ids(hook) == [ord("]")]
    assert write(hook, plain, "]}") == ""
    hook.rollback(100)
    assert len(allowed_ids(hook) or []) > 1


async def test_two_hundred_zeros_fit_into_240_tokens(
    plain: Vocabulary, grammars: MakeGrammars
) -> None:
    hook = await hook_for(grammars, plain, TEXTS, max_tokens=240)
    assert write(hook, plain, '{"a":["' + "0" * 200 + '"]}') == ""


async def test_a_number_that_goes_on_is_not_cut_where_a_list_is_ended(
    qwen3: Vocabulary, grammars: MakeGrammars
) -> None:
    text = '{"lines":[' + counted(list(range(1, 15)))[: -len(".00}")]
    near = len(ids_of(qwen3, text)) * 8 // 7
    hook = await hook_for(grammars, qwen3, LINES, max_tokens=near)
    assert write(hook, qwen3, text) == ""
    assert len(allowed_ids(hook) or []) > 10
    rest = write(hook, qwen3, '.00},{"item"')
    assert rest == '},{"item"'
    allowed = {qwen3.tokenizer.token_bytes(id) for id in allowed_ids(hook) or []}
    assert allowed
    assert all(re.match(rb"[}\]]*\]", token) for token in allowed)
