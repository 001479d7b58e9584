"""Pieces encode as the genuine tokenizer encodes the whole text, flags of added tokens included."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.prompt.encode import WHITE_SPACE, encode_pieces, fewest_tokens, token_starts
from minimsg.prompt.marks import Marks
from minimsg.text.tokenizer import Tokenizer

FLAGS: dict[str, dict[str, dict[str, bool]]] = {
    "none": {},
    "strips left": {"<|user|>": {"lstrip": True}, "<think>": {"lstrip": True}},
    "strips right": {"<|user|>": {"rstrip": True}, "<|im_end|>": {"rstrip": True}},
    "strips both": {"<|user|>": {"lstrip": True, "rstrip": True}, "<think>": {"rstrip": True}},
    "single word": {"<think>": {"single_word": True}, "<|user|>": {"single_word": True}},
    "all": {"<think>": {"single_word": True, "lstrip": True, "rstrip": True}},
}
WORDS = [
    "<|user|>",
    "<think>",
    "<|im_end|>",
    "hello",
    "x",
    " ",
    "\n",
    "\u3000",
    "\x1c",
    "é",
    "_",
    "",
]


@pytest.mark.parametrize("name", FLAGS)
def test_a_template_text_encodes_as_the_genuine_tokenizer_does(
    name: str, write_model: Callable[..., Path]
) -> None:
    folder = write_model(flags=FLAGS[name])
    ours = Tokenizer.from_folder(folder)
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    marks = Marks(ours.control)

    @settings(max_examples=200, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(WORDS), max_size=8).map("".join))
    def check(text: str) -> None:
        pieces = marks.split(marks.mark(text))
        ids = encode_pieces(pieces, ours).ids
        assert ids == theirs.encode(text, add_special_tokens=False).ids
        assert fewest_tokens(pieces, ours) <= len(ids)
        offsets = theirs.encode(text, add_special_tokens=False).offsets
        for start, (begin, _) in zip(token_starts(pieces, ours), offsets, strict=True):
            assert begin <= start
            assert not text[begin:start].strip(WHITE_SPACE)  # theirs begins with what it swallows

    check()


def test_white_space_is_that_of_unicode() -> None:
    python = {chr(n) for n in range(0x110000) if re.match(r"\s", chr(n))}
    assert set(WHITE_SPACE) == python - set("\x1c\x1d\x1e\x1f")
