"""The model's tokens as the grammar engine takes them.

The engine (llguidance) matches bytes. Control tokens are kept apart from bytes: none ever
matches text, so that a string in JSON cannot end a turn, and a grammar that wants one
names its id. Rows of the model beyond its tokenizer stand for nothing and are in no mask.
Knows tokens, no grammar (`lark.py` writes them, `compiler.py` compiles them).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from threading import Lock
from typing import TYPE_CHECKING, cast

from minimsg.engine.types import BitMask
from minimsg.hub.extras import require
from minimsg.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer, TokenizerWrapper


class Vocabulary:
    """The tokens of one model. Each of `end_ids` ends a turn; `end_id` is the one to end it with.

    Safe in any thread.
    """

    def __init__(self, tokenizer: Tokenizer, *, end_ids: frozenset[int], end_id: int) -> None:
        assert end_id in end_ids
        self.tokenizer = tokenizer
        self.end_ids = end_ids
        self.end_id = end_id
        self.ends = bits_of(end_ids)
        self._lock = Lock()
        self._engine_form: LLTokenizer | None = None
        self._sets: dict[bytes, BitMask] = {}

    def engine_form(self) -> LLTokenizer:
        """The tokens as llguidance has them, made once: 1 s for 152k tokens, 0.4 s for 49k.

        Raises ConfigError without llguidance.
        """
        with self._lock:
            if self._engine_form is None:
                self._engine_form = self._make()
        return self._engine_form

    def tag(self, text: str) -> list[int]:
        """The ids of a tag as the model writes it: its control token, or those of the text."""
        if text in self.tokenizer.control:
            return [self.tokenizer.control[text]]
        return self.tokenizer.encode(text, at_start=False)

    def matching(self, pattern: bytes) -> BitMask:
        """The ids of text that begins with `pattern`, a regular expression; looked for once."""
        if pattern not in self._sets:
            control = set(self.tokenizer.control.values())
            ordinary = [id for id in range(self.tokenizer.vocab_size) if id not in control]
            begins = re.compile(pattern).match
            ids = [id for id in ordinary if begins(self.tokenizer.token_bytes(id))]
            self._sets[pattern] = bits_of(ids)
        return self._sets[pattern]

    def _make(self) -> LLTokenizer:
        require("llguidance", extra="engine", purpose="to hold replies to a form")
        from llguidance import LLTokenizer

        size = max(self.tokenizer.vocab_size, max(self.end_ids) + 1)
        ends = [self.end_id, *sorted(self.end_ids - {self.end_id})]
        tokens = cast("TokenizerWrapper", _Tokens(self, size))
        return LLTokenizer(tokens, n_vocab=size, eos_token=ends)


def bits_of(ids: Collection[int]) -> BitMask:
    """The set of `ids`."""
    bits = bytearray(max(ids, default=-1) // 8 + 1)
    for id in ids:
        bits[id // 8] |= 1 << id % 8
    return BitMask(bytes(bits))


class _Tokens:
    """What llguidance asks of a tokenizer of its caller; the names are its own."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        self._tokenizer = vocabulary.tokenizer
        control = {id: text for text, id in self._tokenizer.control.items()}
        self.eos_token_id = vocabulary.end_id
        self.special_token_ids = sorted({*control, *vocabulary.end_ids})
        self.tokens = [
            control[id].encode() if id in control else self._tokenizer.token_bytes(id)
            for id in range(size)
        ]

    def __call__(self, text: str) -> list[int]:
        """The ids that the model would write `text` with: where only one text can follow."""
        return self._tokenizer.encode(text, at_start=False)
