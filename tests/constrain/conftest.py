"""Vocabularies of bytes, with and without tags that are control tokens, and the real Qwen3's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tokenizers import AddedToken

from minimsg.builtin import END_OF_TEXT, TURN_END, byte_tokenizer
from minimsg.constrain.grammars import Grammars
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.text.tokenizer import Tokenizer

ENDS = frozenset({TURN_END, END_OF_TEXT})
TAGS = ["<tool_call>", "</tool_call>", "<think>", "</think>"]


class MakeGrammars(Protocol):
    def __call__(self, vocabulary: Vocabulary, format: str) -> Grammars: ...


def byte_vocabulary(tags: list[str]) -> Vocabulary:
    """Id b is byte b, then come control tokens: ends of a turn, and `tags`, not special ones."""
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in tags])
    return Vocabulary(Tokenizer(json.loads(tokenizer.to_str())), end_ids=ENDS, end_id=TURN_END)


@pytest.fixture(scope="session")
def plain() -> Vocabulary:
    """Every tag is text."""
    return byte_vocabulary([])


@pytest.fixture(scope="session")
def tagged() -> Vocabulary:
    """Every tag is a token."""
    return byte_vocabulary(TAGS)


@pytest.fixture(scope="session")
def qwen3(test_data: Path) -> Vocabulary:
    """The real one, of 151,669 tokens."""
    tokenizer = Tokenizer.from_folder(test_data / "data" / "qwen3")
    ends = frozenset(tokenizer.control[token] for token in ("<|im_end|>", "<|endoftext|>"))
    return Vocabulary(tokenizer, end_ids=ends, end_id=tokenizer.control["<|im_end|>"])


@pytest.fixture(scope="session")
def grammars() -> Iterator[MakeGrammars]:
    """The grammars of a vocabulary and a format, the same ones each time."""
    made: dict[tuple[int, str], Grammars] = {}

    def make(vocabulary: Vocabulary, format: str) -> Grammars:
        key = (id(vocabulary), format)
        if key not in made:
            made[key] = Grammars(vocabulary, format)
        return made[key]

    yield make
    for each in made.values():
        each.close()
