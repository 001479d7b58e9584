"""A rendered prompt, cut at its control tokens, as token ids.

The genuine tokenizer, given the whole text, cuts it at control tokens and encodes each
stretch between on its own. So does this, with cuts where the *template* wrote a control
token: the ids are those of the whole text wherever no value holds a control string.
Added tokens may swallow white space beside them or want no letter beside them; those
flags are honoured.

A prompt that grows keeps the ids in front of its end, but for the last few of them:
`fixed_lengths` says how many (`text/boundaries.py` says why). Knows pieces and a
tokenizer, no templates and no requests.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

from minimsg.prompt.marks import Piece
from minimsg.text.boundaries import Encoded, last_cut
from minimsg.text.tokenizer import ControlToken, Tokenizer

# Unicode's White_Space, which is what the Rust side strips; Python's differs in U+001C-1F.
WHITE_SPACE: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Plain text between control tokens, which may be empty, encoded on its own."""

    begin: int  # its place in the text of all pieces
    text: str  # with white space that the control tokens swallow,
    lost: int  # so much of it at the start
    encoded: Encoded | None  # None: nothing is left of it
    num_before: int  # ids in front of it


class ImagePlace(NamedTuple):
    """Which of a request's images stands at `ids[start:stop]`."""

    number: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class EncodedPieces:
    """The ids of a rendered prompt, its plain stretches and its images in their order."""

    ids: list[int]
    stretches: list[Stretch]
    images: list[ImagePlace]


def encode_pieces(pieces: Sequence[Piece], tokenizer: Tokenizer, prefix: str = "") -> EncodedPieces:
    """`pieces`: plain, control, plain, ..., plain, and then `prefix`. Raises RequestError."""
    placed = _placed_stretches(pieces, tokenizer)
    if prefix:
        begin = sum(len(piece.text) for piece in pieces)
        placed.append(_Placed(begin, prefix, 0, Piece(prefix, False)))
    ids: list[int] = []
    stretches: list[Stretch] = []
    images: list[ImagePlace] = []
    for place, (begin, text, lost, piece) in enumerate(placed):
        if piece.is_control:
            if piece.image is not None:
                images.append(ImagePlace(piece.image, len(ids), len(ids) + piece.count))
            ids += [tokenizer.control[piece.text]] * piece.count
            continue
        encoded = tokenizer.encoded(piece.text, at_start=place == 0) if piece.text else None
        stretches.append(Stretch(begin, text, lost, encoded, len(ids)))
        ids += encoded.ids if encoded else []
    return EncodedPieces(ids, stretches, images)


def fixed_lengths(
    stretches: Sequence[Stretch], ends: Sequence[int], tokenizer: Tokenizer
) -> list[int]:
    """For each of `ends`, which rise, how many ids nothing can change that comes behind it.

    A length is a function of the text before its end. A control token is always a cut.
    """
    begins = [stretch.begin for stretch in stretches]
    lengths: list[int] = []
    number, cut, looked_at = -1, 0, 0  # where the last cut was, and how far it was sought
    for end in ends:
        if (found := bisect_left(begins, end) - 1) != number:
            number, cut, looked_at = found, 0, 0
        if number < 0:
            lengths.append(0)
            continue
        stretch = stretches[number]
        stop = min(end - stretch.begin, len(stretch.text))
        cut = last_cut(stretch.text, max(looked_at - 1, 0), stop, tokenizer.cuts_before) or cut
        looked_at = stop
        inside = 0
        if cut and stretch.encoded is not None:
            inside = stretch.encoded.num_before(cut - stretch.lost)
        lengths.append(stretch.num_before + inside)
    return lengths


def token_starts(pieces: Sequence[Piece], tokenizer: Tokenizer) -> list[int]:
    """For each id of `encode_pieces` where it begins in the text of all `pieces` together."""
    starts: list[int] = []
    for place, (begin, _, lost, piece) in enumerate(_placed_stretches(pieces, tokenizer)):
        if piece.is_control:
            starts += [begin] * piece.count
        elif piece.text:
            inside = tokenizer.starts(piece.text, at_start=place == 0)
            starts += [begin + lost + start for start in inside]
    return starts


def fewest_tokens(pieces: Sequence[Piece], tokenizer: Tokenizer) -> int:
    """A number of tokens that `pieces` have at least, told without encoding them."""
    return sum(
        piece.count if piece.is_control else tokenizer.fewest_tokens(piece.text)
        for piece in stretches_of(pieces, tokenizer)
    )


def stretches_of(pieces: Sequence[Piece], tokenizer: Tokenizer) -> list[Piece]:
    """`pieces` as the flags of the control tokens among them leave them."""
    return [placed.piece for placed in _placed_stretches(pieces, tokenizer)]


class _Placed(NamedTuple):
    """A stretch, and its text and place before it lost white space at its ends."""

    begin: int
    text: str
    lost: int  # at the start
    piece: Piece


def _placed_stretches(pieces: Sequence[Piece], tokenizer: Tokenizer) -> list[_Placed]:
    settled = _with_single_words_settled(pieces, tokenizer)
    tokens = [tokenizer.control_tokens[p.text] if p.is_control else None for p in settled]
    placed: list[_Placed] = []
    begin = 0
    for piece, before, after in zip(settled, [None, *tokens], [*tokens[1:], None], strict=False):
        lost, text = (0, piece.text) if piece.is_control else _stripped(piece.text, before, after)
        placed.append(_Placed(begin, piece.text, lost, replace(piece, text=text)))
        begin += len(piece.text)
    return placed


def _stripped(
    text: str, before: ControlToken | None, after: ControlToken | None
) -> tuple[int, str]:
    """How many characters `text` loses at its start, and what is left of it."""
    kept = text.lstrip(WHITE_SPACE) if before is not None and before.strips_right else text
    lost = len(text) - len(kept)
    return lost, kept.rstrip(WHITE_SPACE) if after is not None and after.strips_left else kept


def _with_single_words_settled(pieces: Sequence[Piece], tokenizer: Tokenizer) -> list[Piece]:
    """A single-word token beside a letter is text, and joins the text around it."""
    if not any(token.is_single_word for token in tokenizer.control_tokens.values()):
        return list(pieces)
    filled = [piece for piece in pieces if piece.text]
    befores = ["", *(piece.text for piece in filled)]
    afters = [*(piece.text for piece in filled[1:]), ""]
    marked = [
        (piece.is_control and not _is_inside_word(piece, before, after, tokenizer), piece)
        for piece, before, after in zip(filled, befores, afters, strict=False)
    ]
    settled = [Piece("", False)]
    for is_control, run in groupby(marked, key=lambda mark: mark[0]):
        alike = [piece for _, piece in run]
        text = "".join(piece.text for piece in alike)
        settled += alike if is_control else [Piece(text, False)]
    return settled if len(settled) == 1 or settled[1].is_control else settled[1:]


def _is_inside_word(piece: Piece, before: str, after: str, tokenizer: Tokenizer) -> bool:
    if not tokenizer.control_tokens[piece.text].is_single_word:
        return False
    return bool(re.search(r"\w\Z", before) or re.match(r"\w", after))
