"""Compressed bodies, gzip or deflate, inflated a bounded number of bytes at a time.

Knows bytes; which encodings a body may have, and how large it may become, is for who reads
it: `body.py`, `batch_body.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from minimsg.errors import InvalidRequest

# Of zlib's `wbits`: a window of up to 2^15 bytes, behind a header of gzip, of zlib or none.
GZIP, ZLIB, RAW = 15 + 16, 15, -15
PIECE_BYTES: Final = 64 * 1024  # that are inflated at a time


class Inflating:
    """One compressed body on its way."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._start = b""
        self._stream: zlib._Decompress | None = None  # once two bytes have come

    def push(self, data: bytes) -> Iterator[bytes]:
        """What `data` inflates to. Raises InvalidRequest."""
        if self._stream is None:
            data = self._start = self._start + data
            if len(data) < 2:
                return
            self._stream = zlib.decompressobj(window_bits(self._encoding, data))
        is_full = True
        while is_full:
            try:
                piece = self._stream.decompress(data, PIECE_BYTES)
            except zlib.error:
                raise _badly_encoded() from None
            yield piece
            data, is_full = self._stream.unconsumed_tail, len(piece) == PIECE_BYTES
        if self._stream.unused_data:
            raise _badly_encoded()

    def flush(self) -> None:
        """Nothing more comes. Raises InvalidRequest if something is missing."""
        if self._stream is None or not self._stream.eof:
            raise _badly_encoded()


def window_bits(encoding: str, start: bytes) -> int:
    """zlib's `wbits` for a body that begins with `start`, two bytes at least."""
    return GZIP if encoding != "deflate" else ZLIB if _has_zlib_header(start) else RAW


def _has_zlib_header(start: bytes) -> bool:
    """Whether a deflated body keeps to the standard (RFC 1950); some clients leave the header."""
    return start[0] & 15 == 8 and int.from_bytes(start[:2], "big") % 31 == 0


def _badly_encoded() -> InvalidRequest:
    return InvalidRequest(
        "content-encoding",
        "the body is not what it says",
        error_code="request_body_encoding_invalid",
    )
