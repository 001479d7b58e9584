"""The oracle is the decoding of all ids at once, checked against `tokenizers` elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.text.detokenize import Detokenizer
from minimsg.text.tokenizer import Tokenizer

TOKENIZERS = ["byte_level", "pieces", "qwen3", pytest.param("smollm2", marks=pytest.mark.weights)]


class Pair(Protocol):
    """See conftest.py."""

    ours: Tokenizer


def byte_ids(tokenizer: Tokenizer, data: bytes) -> list[int]:
    """One id a byte."""
    ids = {tokenizer.token_bytes(id): id for id in reversed(range(tokenizer.vocab_size))}
    return [ids[bytes([byte])] for byte in data]


def pushed(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(tokenizer)
    return [*map(detokenizer.push, ids), detokenizer.flush()]


def test_a_character_of_several_tokens_is_shown_when_it_is_whole(byte_level_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    text = "aé\U0001f469\u200d\U0001f680"
    shown = pushed(tokenizer, byte_ids(tokenizer, text.encode()))
    assert [piece for piece in shown if piece] == list(text)


def test_every_cut_of_a_text_adds_up_and_shows_a_replacement_at_the_very_end_only(
    byte_level_folder: Path,
) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    data = "é\U0001f469\u200d\U0001f680ß".encode()
    for length in range(len(data) + 1):
        *before, last = pushed(tokenizer, byte_ids(tokenizer, data[:length]))
        assert "".join(before) + last == data[:length].decode(errors="replace")
        assert "\ufffd" not in "".join(before)


def test_a_byte_that_can_never_become_a_character_is_replaced_at_once(
    byte_level_folder: Path,
) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    assert pushed(tokenizer, byte_ids(tokenizer, b"\xffa")) == ["\ufffd", "a", ""]
    assert pushed(tokenizer, byte_ids(tokenizer, b"\xe2\x82a")) == ["", "", "\ufffda", ""]


def test_special_tokens_show_nothing_and_do_not_break_a_character(byte_level_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    first, second = byte_ids(tokenizer, "é".encode())
    ids = [tokenizer.control["<|start|>"], first, tokenizer.control["<|end|>"], second]
    assert pushed(tokenizer, ids) == ["", "", "", "é", ""]
    assert pushed(tokenizer, [tokenizer.control["<call>"]]) == ["<call>", ""]


@pytest.mark.parametrize("pair", TOKENIZERS, indirect=True)
def test_what_is_pushed_adds_up_to_the_whole_decoding(pair: Pair) -> None:
    tokenizer = pair.ours
    any_id = st.integers(0, tokenizer.vocab_size + 10) | st.integers(0, 300)

    @settings(max_examples=500, suppress_health_check=list(HealthCheck))
    @given(st.lists(any_id, max_size=30))
    def check(ids: list[int]) -> None:
        assert "".join(pushed(tokenizer, ids)) == tokenizer.decode(ids)

    check()


def test_a_leading_space_is_dropped_once_and_kept_where_a_text_continues(
    pieces_folder: Path,
) -> None:
    tokenizer = Tokenizer.from_folder(pieces_folder)
    hello, *_ = tokenizer.encode("Hello")
    assert pushed(tokenizer, [hello, hello]) == ["Hello", " Hello", ""]
    assert Detokenizer(tokenizer, continues=True).push(hello) == " Hello"


def test_a_special_token_that_a_parser_looks_for_is_shown(byte_level_folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(byte_level_folder)
    ids = [tokenizer.control["<|start|>"], *tokenizer.encode("a"), tokenizer.control["<|end|>"]]
    detokenizer = Detokenizer(tokenizer, tags=["<|start|>", "not in the vocabulary"])
    assert "".join(map(detokenizer.push, ids)) == "<|start|>a"
