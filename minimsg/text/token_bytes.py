"""The bytes that a token stands for, from a tokenizer's own description of its decoder.

Two kinds of decoder are known. *Byte-level* (GPT-2, Llama 3, Qwen, SmolLM2) writes each
byte as one printable character. *Piece-like* (SentencePiece: Llama 2) writes a space as
U+2581 and a byte that has no piece as `<0xNN>`. Any other is refused: text that is
almost right is worse than none.

Knows the `decoder` object of tokenizer.json and nothing of vocabularies or streams;
`detokenize.py` joins the bytes. Source: decoders of the `tokenizers` library; the byte
alphabet is that of GPT-2's encoder.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

SPACE_MARK: Final = "\u2581"
BYTE_PIECE: Final = re.compile("<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class Decoding:
    """How tokens become bytes, and how many leading spaces of the whole text are dropped."""

    to_bytes: Callable[[str], bytes]
    leading_spaces: int = 0
    has_space_mark: bool = False  # U+2581 in a token is a space, whichever of both was read


def read_decoder(decoder: object) -> Decoding:
    """The `decoder` of a tokenizer.json. Raises ValueError, saying what is not understood."""
    steps = _steps(decoder)
    kinds = [str(step.get("type")) for step in steps]
    if kinds == ["ByteLevel"]:
        return Decoding(_byte_level)
    if kinds[:3] == ["Replace", "ByteFallback", "Fuse"] and kinds[3:] in ([], ["Strip"]):
        _check_space_mark(steps[0])
        leading_spaces = _leading_spaces(steps[3]) if steps[3:] else 0
        return Decoding(_piece, leading_spaces, has_space_mark=True)
    raise ValueError(f"a decoder made of {kinds}")


def _steps(decoder: object) -> list[Mapping[str, object]]:
    if not isinstance(decoder, dict):
        return []
    inner = decoder.get("decoders") if decoder.get("type") == "Sequence" else [decoder]
    if not isinstance(inner, list):
        return []
    return [step for step in inner if isinstance(step, dict)]


def _check_space_mark(step: Mapping[str, object]) -> None:
    if (step.get("pattern"), step.get("content")) != ({"String": SPACE_MARK}, " "):
        raise ValueError(f"a decoder that replaces {step.get('pattern')!r}")


def _leading_spaces(step: Mapping[str, object]) -> int:
    start, stop = step.get("start"), step.get("stop")
    if step.get("content") != " " or not isinstance(start, int) or stop != 0:
        raise ValueError(f"a decoder that strips {step!r}")
    return start


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte: printable Latin-1 stands for itself, the rest is moved to U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {
        chr(0x100 + n): byte for n, byte in enumerate(moved)
    }


BYTE_ALPHABET: Final = _byte_alphabet()


def _byte_level(token: str) -> bytes:
    """A token with any character outside the alphabet stands for its own UTF-8."""
    try:
        return bytes([BYTE_ALPHABET[character] for character in token])
    except KeyError:
        return token.encode()


def _piece(token: str) -> bytes:
    if byte := BYTE_PIECE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    return token.replace(SPACE_MARK, " ").encode()
