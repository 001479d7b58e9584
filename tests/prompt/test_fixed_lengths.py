"""The ids that a mark covers are the same whatever follows: of any text, with every tokenizer."""

from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.builtin import byte_tokenizer
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.encode import encode_pieces, fixed_lengths
from minimsg.prompt.marks import Marks
from minimsg.text.from_gguf import PRE_TOKENIZERS
from minimsg.text.tokenizer import Tokenizer

from .conftest import tokenizer_description

EXAMPLES: Final = 150
WORDS: Final = (
    *(" ", "  ", "\n", "\n\n", "\t", "\r\n", "\u3000", "\u2028", "\xa0", "12", "345", "٣", "½"),
    *("'", "'s", "'ll", "’", "don't", "hello", "world", "Zoë", "e\u0301", "\u0301", "\u0338", "각"),
    *("\u1112", "\u1161", "你好", "世界", "，", "。", "👩‍🚀", "🏽", "<|im_end|>", "<|im", "_end|>"),
    *("<think>", "</", ".", "!?", "-", "--", "=", "<", "(", "\u200d", "ﬁ", "ẛ̣", "ß", "х", "\x1c"),
)
TEXTS: Final = st.lists(st.sampled_from(WORDS), max_size=7).map("".join)
ENDS: Final = st.sampled_from(["", "<|im_start|>", "<|im_end|>", "<think>"])
FLAGS: Final[dict[str, dict[str, dict[str, bool]]]] = {
    "plain": {},
    "strips": {"<|im_end|>": {"lstrip": True, "rstrip": True}, "<think>": {"lstrip": True}},
    "single word": {"<think>": {"single_word": True}, "<|im_start|>": {"single_word": True}},
}


def hold_for_any_text(tokenizer: Tokenizer) -> None:
    """`before` ends with a block's end; what comes behind changes neither length nor ids."""
    marks = Marks(tokenizer.control)

    def fixed(before: str, after: str) -> tuple[int, list[int]]:
        pieces = marks.split(before + after)
        made = encode_pieces(pieces, tokenizer)
        shown = "".join(piece.text for piece in marks.split(before))
        (length,) = fixed_lengths(made.stretches, [len(shown)], tokenizer)
        return length, made.ids[:length]

    def control(name: str) -> str:
        return marks.mark(name) if name in tokenizer.control else ""

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(ENDS, TEXTS, TEXTS.filter(bool), st.lists(st.tuples(ENDS, TEXTS, ENDS), max_size=4))
    def check(start: str, first: str, said: str, endings: list[tuple[str, str, str]]) -> None:
        before = first + control(start) + said
        alone = fixed(before, "")
        for left, ending, right in endings:
            assert fixed(before, control(left) + ending + control(right)) == alone

    check()


@pytest.mark.parametrize("name", FLAGS)
def test_of_a_byte_level_tokenizer(name: str) -> None:
    hold_for_any_text(Tokenizer(tokenizer_description(**FLAGS[name])))


def test_of_a_tokenizer_of_bytes() -> None:
    hold_for_any_text(Tokenizer(json.loads(byte_tokenizer(thinks=True).to_str())))


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_of_every_way_to_cut_that_has_a_name(name: str) -> None:
    """Single digits as in SmolLM2 are one of them, groups of three as in Llama 3 another."""
    cutter = byte_tokenizer()
    cutter.pre_tokenizer = PRE_TOKENIZERS[name].pre_tokenizer()
    cut = json.loads(cutter.to_str())["pre_tokenizer"]
    hold_for_any_text(Tokenizer({**tokenizer_description(), "pre_tokenizer": cut}))


def test_what_is_never_cut_is_fixed_up_to_its_last_control_token() -> None:
    uncut = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    described = {**tokenizer_description(), "pre_tokenizer": {**uncut, "use_regex": False}}
    hold_for_any_text(tokenizer := Tokenizer(described))
    marks = Marks(tokenizer.control)
    made = encode_pieces(marks.split(marks.mark("one <|im_end|> two, three.")), tokenizer)
    assert fixed_lengths(made.stretches, [4, 26], tokenizer) == [0, len("one ") + 1]


def test_of_the_published_tokenizer(qwen3: ChatModel) -> None:
    hold_for_any_text(qwen3.tokenizer)
