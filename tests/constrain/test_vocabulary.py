"""Tokens as the grammar engine takes them: control tokens apart, none that stands for nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tokenizers import AddedToken

from minimsg import hub
from minimsg.builtin import END_OF_TEXT, TURN_END, byte_tokenizer
from minimsg.constrain import lark
from minimsg.constrain.compiler import Compiler
from minimsg.constrain.hooks import GrammarHook
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.errors import ModelNotFound
from minimsg.text.tokenizer import Tokenizer
from tests.constrain.driving import allowed_ids, ids_of, spell, write

ANY_TEXT = "start: /(?s:.*)/\n"


def hook_for(vocabulary: Vocabulary, grammar: str) -> GrammarHook:
    return GrammarHook(Compiler(vocabulary).matcher([grammar]), vocabulary)


def test_no_control_token_is_text_but_those_that_end_the_turn_may_come(tagged: Vocabulary) -> None:
    allowed = set(allowed_ids(hook_for(tagged, ANY_TEXT)) or [])
    assert allowed & set(tagged.tokenizer.control.values()) == {TURN_END, END_OF_TEXT}
    assert allowed >= set(range(128))


def test_a_tag_is_its_control_token_where_there_is_one(
    plain: Vocabulary, tagged: Vocabulary
) -> None:
    for vocabulary in (plain, tagged):
        grammar = f'start: {lark.tag("<think>", vocabulary)} "x"\n'
        assert vocabulary.tag("<think>") == ids_of(vocabulary, "<think>")
        assert write(hook_for(vocabulary, grammar), vocabulary, "<think>x") == ""
    assert plain.tag("<think>") == [*b"<think>"]
    assert len(tagged.tag("<think>")) == 1


def test_ids_without_a_token_and_rows_beyond_the_tokenizer_are_never_allowed() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens([AddedToken("<tag>", special=False, normalized=False)])
    description = json.loads(tokenizer.to_str())
    description["added_tokens"][-1]["id"] = 300  # a hole from 259 to 299
    vocabulary = Vocabulary(Tokenizer(description), end_ids=frozenset({TURN_END}), end_id=TURN_END)
    allowed = allowed_ids(hook_for(vocabulary, ANY_TEXT))
    assert allowed is not None
    assert max(allowed) == TURN_END


def test_a_character_is_finished_before_anything_else_may_come(plain: Vocabulary) -> None:
    hook = hook_for(plain, ANY_TEXT)
    first, second, third = "€".encode()
    hook.advance(first)
    assert set(allowed_ids(hook) or []) == set(range(0x80, 0xC0))
    hook.advance(second)
    hook.advance(third)
    assert TURN_END in (allowed_ids(hook) or [])


def test_many_threads_make_one_engine_form() -> None:
    tokenizer = Tokenizer(json.loads(byte_tokenizer().to_str()))
    vocabulary = Vocabulary(tokenizer, end_ids=frozenset({TURN_END}), end_id=TURN_END)
    with ThreadPoolExecutor(8) as threads:
        forms = list(threads.map(lambda _: vocabulary.engine_form(), range(8)))
    assert all(form is forms[0] for form in forms)


def real(request: pytest.FixtureRequest, name: str) -> Tokenizer:
    if name == "qwen3":
        test_data: Path = request.getfixturevalue("test_data")
        return Tokenizer.from_folder(test_data / "data" / "qwen3")
    try:
        return Tokenizer.from_folder(hub.resolve("smollm2"))
    except ModelNotFound as error:
        pytest.skip(f"{error}")


@pytest.mark.parametrize("name", ["qwen3", "smollm2"])
def test_a_real_tokenizer_writes_what_a_grammar_says_in_its_own_ids(
    request: pytest.FixtureRequest, name: str
) -> None:
    tokenizer = real(request, name)
    end_id = tokenizer.control["<|im_end|>"]
    vocabulary = Vocabulary(tokenizer, end_ids=frozenset({end_id}), end_id=end_id)
    text = '{"name": "get_weather", "arguments": {"city": "Łódź, 12345 🙂"}}\n'
    grammar = f"start: {lark.tag('<tool_call>', vocabulary)} {lark.literal(text)}\n"
    hook, ids = hook_for(vocabulary, grammar), list[int]()
    while hook.forced() is None:
        (id,) = allowed_ids(hook) or []  # canonical: one way to go on
        ids.append(id)
        hook.advance(id)
    assert spell(vocabulary, ids) == f"<tool_call>{text}"
    assert ids == [*vocabulary.tag("<tool_call>"), *tokenizer.encode(text, at_start=False)]
