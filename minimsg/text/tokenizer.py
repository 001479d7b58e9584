"""Text to token ids and back, with control tokens kept apart from text.

A control token is *any* added token of tokenizer.json, special or not: Qwen3's
`<tool_call>` is not "special" and steers the model all the same. `encode` takes plain
text and yields no control id, ever (`plain.py` says how); control ids come from
`control`, and only `prompt/` has a reason to look there.

Knows tokenizer.json and the `tokenizers` library, and its two quirks: a panic of the
Rust side is no `Exception`, and it takes lone surrogates for a wrong type. Knows no
templates, requests or streams (`detokenize.py`).
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import tokenizers
from pydantic_core import from_json, to_json

from minimsg.errors import CheckpointError, InternalError, InvalidRequest
from minimsg.text.boundaries import Encoded, always_cuts
from minimsg.text.plain import for_later_stretches, plain_copy
from minimsg.text.token_bytes import SPACE_MARK, Decoding, read_decoder

T = TypeVar("T")
SAMPLE_BYTES: Final = 4096
NFC_SHRINKS: Final = 3  # three Hangul letters, nine bytes, become one of three bytes
MAX_IDS: Final = 1 << 22  # the largest vocabularies hold 2**18
# Parsers look for these in text; some vocabularies call them special, which would hide them.
READ_AS_TEXT: Final = frozenset({"<think>", "</think>", "<tool_call>", "</tool_call>"})
KEEPS_TEXT: Final = {"ByteLevel", "Metaspace", "Digits", "UnicodeScripts"}


class TokenizerPanic(Exception):
    """The Rust side failed; PanicException itself is no `Exception` and would slip through."""


@dataclass(frozen=True)
class ControlToken:
    """An added token and how it treats the text beside it."""

    text: str
    id: int
    is_special: bool = False  # never shown in text
    strips_left: bool = False  # swallows white space before it
    strips_right: bool = False
    is_single_word: bool = False  # is ordinary text where a letter touches it
    is_normalized: bool = False  # is looked for in normalized text


class Tokenizer:
    """One model's vocabulary. Immutable and safe to share between threads."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        """`description`: a parsed tokenizer.json. Raises ValueError, KeyError, TypeError."""
        self.control_tokens = {
            token.text: token for token in map(_control_token, description.get("added_tokens", []))
        }
        self.control: Mapping[str, int] = {t: c.id for t, c in self.control_tokens.items()}
        self.special_ids = frozenset(
            c.id
            for c in self.control_tokens.values()
            if c.is_special and c.text not in READ_AS_TEXT
        )
        self._control_ids = frozenset(self.control.values())
        self._decoding: Decoding = read_decoder(description.get("decoder"))
        self._tokens = _by_id({**description["model"]["vocab"], **self.control})
        self._normalizers = _normalizers(description.get("normalizer"))
        self._keeps_text = _keeps_text(description.get("pre_tokenizer"))
        self._opening_ids = _opening_ids(description.get("post_processor"))

        self._has_byte_fallback = description["model"].get("byte_fallback") is True

        plain = plain_copy(dict(description), self._control_ids)
        later = for_later_stretches(plain)
        self._at_start = _build(plain)
        self._later = _build(later) if later else self._at_start
        self.cuts_before = cache(self._cuts_before)

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """The tokenizer.json of a model folder. Raises CheckpointError if it cannot be trusted."""
        file = folder / "tokenizer.json"
        expected = "a tokenizer.json of a BPE model, as `tokenizers` writes it"
        try:
            return cls(from_json(file.read_bytes()))
        except FileNotFoundError as error:
            raise CheckpointError(file, "no such file", expected) from error
        except KeyError as error:
            raise CheckpointError(file, f"no field {error}", expected) from error
        except (ValueError, TypeError, AttributeError, OSError, TokenizerPanic) as error:
            raise CheckpointError(file, f"{error}", expected) from error

    @property
    def vocab_size(self) -> int:
        """One more than the highest id that means something."""
        return len(self._tokens)

    @property
    def leading_spaces(self) -> int:
        """Spaces that the start of a decoded text loses, if it has them."""
        return self._decoding.leading_spaces

    @cached_property
    def longest_token_bytes(self) -> int:
        """No ordinary token stands for more bytes than this."""
        return max(map(len, self._ordinary_tokens()), default=1) or 1

    @property
    def opening_ids(self) -> list[int]:
        """What the published tokenizer puts before every text: a begin token, or nothing."""
        return list(self._opening_ids)

    def fewest_tokens(self, text: str) -> int:
        """A number of ids that `text` has at least, told without encoding it."""
        if self._normalizers - {"NFC", "Prepend"} or not self._keeps_text:
            return 0  # it may remove anything
        if self._decoding.has_space_mark:
            if not self._has_byte_fallback or self._bytes_left_out:
                return 0  # it leaves out whole characters
            text = text.replace(SPACE_MARK, " ")
        data = text.encode().translate(None, self._bytes_left_out)
        # Unicode promises that what is in NFC stays as it is in every later version.
        if "NFC" in self._normalizers and not unicodedata.is_normalized("NFC", text):
            return len(data) // (NFC_SHRINKS * self.longest_token_bytes)
        frequent = [byte for byte, _ in Counter(data[:SAMPLE_BYTES]).most_common(3)]
        by_byte = [-(-data.count(byte) // (self._most_of[byte] or 1)) for byte in frequent]
        return max(-(-len(data) // self.longest_token_bytes), *by_byte, 0)

    @cached_property
    def _bytes_left_out(self) -> bytes:
        """Bytes that have no token: SmolLM2 has none for some control characters."""
        single = (token for token in self._ordinary_tokens() if len(token) == 1)
        return bytes(set(range(256)).difference(*single))

    @cached_property
    def _most_of(self) -> list[int]:
        """For each byte, how often the ordinary token that has most of it has it."""
        most = [0] * 256
        for token in self._ordinary_tokens():
            for byte in set(token):
                most[byte] = max(most[byte], token.count(byte))
        return most

    def _ordinary_tokens(self) -> Iterator[bytes]:
        ordinary = (id for id in range(self.vocab_size) if id not in self._control_ids)
        return map(self.token_bytes, ordinary)

    def encode(self, text: str, *, at_start: bool = True) -> list[int]:
        """Plain text as ids, none of them a control id.

        `at_start`: nothing stands before the text; some tokenizers put a space there.
        Raises InvalidRequest for text that is not Unicode, InternalError if `tokenizers` fails.
        """
        return self.encoded(text, at_start=at_start).ids

    def encoded(self, text: str, *, at_start: bool = True) -> Encoded:
        """The ids of `encode` and where they stand in `text`. Raises as `encode` does."""
        encoded = Encoded(self._encoding(text, at_start))
        if not self._control_ids.isdisjoint(encoded.ids):
            raise InternalError("the tokenizer made a control token of plain text")
        return encoded

    def starts(self, text: str, *, at_start: bool = True) -> list[int]:
        """For each id of `encode`, the place in `text` of the first character it writes.

        Where a character takes several ids, each has its place. Raises as `encode` does.
        """
        return [start for start, _ in self._encoding(text, at_start).offsets]

    def _cuts_before(self, character: str) -> bool:
        """Whether what stands before it, if it is a word, never shares an id with it."""
        return always_cuts(lambda text: self._encoding(text, at_start=False), character)

    def _encoding(self, text: str, at_start: bool) -> tokenizers.Encoding:
        encoder = self._at_start if at_start else self._later
        try:
            return _guarded(lambda: encoder.encode(text, add_special_tokens=False))
        except TypeError as error:
            raise InvalidRequest("", "text must not contain lone surrogates") from error
        except TokenizerPanic as error:
            raise InternalError(f"the tokenizer failed on a text of {len(text):,} chars") from error

    def token_bytes(self, id: int) -> bytes:
        """The bytes that `id` stands for; none for an id without meaning."""
        if not 0 <= id < len(self._tokens):
            return b""
        return self._decoding.to_bytes(self._tokens[id])

    def token_text(self, id: int) -> str:
        """The text of `id` alone, for people to read: U+FFFD for a part of a character."""
        return self.token_bytes(id).decode(errors="replace")

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`: special tokens left out, U+FFFD for bytes that are not UTF-8.

        One U+FFFD for each part that cannot be UTF-8, as Python and the Unicode Standard
        have it, since a stream cannot take back what it has shown. `tokenizers` differs
        for byte fallback: there one bad byte spoils the whole run of byte tokens around it.
        """
        shown = (id for id in ids if id not in self.special_ids)
        text = b"".join(map(self.token_bytes, shown)).decode("utf-8", errors="replace")
        spaces = len(text) - len(text.lstrip(" "))
        return text[min(spaces, self.leading_spaces) :]


def _control_token(added: Mapping[str, Any]) -> ControlToken:
    text, id = added["content"], added["id"]
    if not (isinstance(text, str) and text and isinstance(id, int) and id >= 0):
        raise ValueError(f"an added token {text!r} with id {id!r}")
    return ControlToken(
        text=text,
        id=id,
        is_special=bool(added.get("special")),
        strips_left=bool(added.get("lstrip")),
        strips_right=bool(added.get("rstrip")),
        is_single_word=bool(added.get("single_word")),
        is_normalized=bool(added.get("normalized")),
    )


def _by_id(vocabulary: Mapping[str, int]) -> list[str]:
    """Id -> token, "" where the numbering has a hole. Raises ValueError."""
    for token, id in vocabulary.items():
        if type(id) is not int or not 0 <= id < MAX_IDS:
            raise ValueError(f"token {token!r:.60} with id {id!r}, not from 0 to {MAX_IDS - 1:,}")
    tokens = [""] * (max(vocabulary.values(), default=-1) + 1)
    for token, id in vocabulary.items():
        tokens[id] = token
    return tokens


def _normalizers(step: object) -> frozenset[str]:
    """The kinds of normalizers, less the one that only writes spaces as U+2581."""
    if not isinstance(step, dict):
        return frozenset()
    if step.get("type") == "Sequence":
        return frozenset().union(*map(_normalizers, step["normalizers"]))
    is_space_mark = step.get("pattern") == {"String": " "} and step.get("content") == SPACE_MARK
    return frozenset() if is_space_mark else frozenset({str(step.get("type"))})


def _keeps_text(step: object) -> bool:
    """Whether a pre-tokenizer only cuts a text, and drops no part of it."""
    if not isinstance(step, dict):
        return True
    if step.get("type") == "Sequence":
        return all(map(_keeps_text, step["pretokenizers"]))
    if step.get("type") in ("Split", "Punctuation"):
        return step.get("behavior") != "Removed"
    return step.get("type") in KEEPS_TEXT


def _opening_ids(post_processor: object) -> list[int]:
    """The ids that a `post_processor` puts before a text, seen on a text of one token."""
    if post_processor is None:
        return []
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    tokenizer = _build({"added_tokens": [], "post_processor": post_processor, "model": model})
    encoded = _guarded(lambda: tokenizer.encode("a"))
    marked = zip(encoded.ids, encoded.special_tokens_mask, strict=True)
    return [id for id, _ in takewhile(lambda pair: pair[1], marked)]


def _build(description: Mapping[str, Any]) -> tokenizers.Tokenizer:
    return _guarded(lambda: _from_bytes(to_json(description)))


def _from_bytes(data: bytes) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_buffer(data)
    except Exception as error:  # `tokenizers` raises the bare class
        raise ValueError(f"{error}") from error


def _guarded(work: Callable[[], T]) -> T:
    """`work()`, with a panic of the Rust side turned into an `Exception`."""
    try:
        return work()
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as panic:
        raise TokenizerPanic(f"{panic}") from panic
