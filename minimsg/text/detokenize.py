"""Token ids to text, one id at a time, never half a character.

What `push` and `flush` return adds up to `Tokenizer.decode` of all ids, and tags. Bytes that may
still become a character are held; U+FFFD appears only where no further byte could help.
Knows nothing of stop strings (`stops.py`) or of what the text means (`parsing/`).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from minimsg.text.tokenizer import Tokenizer


class Detokenizer:
    """The state of one reply: bytes held back, and spaces still to be dropped.

    `continues`: the reply goes on with text that the prompt ended with (an assistant
    prefix), so a space at its start is meant. `tags`: special tokens that show all the same,
    since a parser looks for them.
    """

    def __init__(
        self, tokenizer: Tokenizer, *, continues: bool = False, tags: Iterable[str] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._hidden = tokenizer.special_ids - {tokenizer.control.get(tag) for tag in tags}
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._droppable = 0 if continues else tokenizer.leading_spaces

    def push(self, id: int) -> str:
        """Text that is certain after `id`; special tokens show nothing."""
        if id in self._hidden:
            return ""
        return self._without_leading_spaces(self._decoder.decode(self._tokenizer.token_bytes(id)))

    def flush(self) -> str:
        """What was held back, now that no more ids come."""
        return self._without_leading_spaces(self._decoder.decode(b"", final=True))

    def _without_leading_spaces(self, text: str) -> str:
        while self._droppable and text:
            if text[0] != " ":
                self._droppable = 0
                break
            text, self._droppable = text[1:], self._droppable - 1
        return text
