"""A grammar is tried out before anybody is held to it."""

from __future__ import annotations

import pytest

from minimsg.constrain.compiler import Compiler
from minimsg.constrain.vocabulary import Vocabulary


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a"',
        'start: /[a-z]+/ "."',
        'start: %json {"type": "string", "minLength": 5000}',
        'start: %json {"type": "array", "items": {"type": "object"}}',
    ],
)
def test_a_grammar_whose_replies_end_or_go_on_is_taken(plain: Vocabulary, grammar: str) -> None:
    assert Compiler(plain).problem(grammar + "\n") == ""


def test_a_grammar_that_breaks_down_at_a_mask_is_not_taken(plain: Vocabulary) -> None:
    never_ends = 'start: inner\ninner: "a" inner\n'
    assert Compiler(plain).problem(never_ends) != ""
