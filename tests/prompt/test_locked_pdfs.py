"""Encrypted PDFs are refused in words, whatever encrypts them, and even where nothing is asked."""

from __future__ import annotations

from contextlib import nullcontext

import pypdfium2
import pytest

from minimsg.prompt.pdf import LOCKED, Pdf

from .locked_pdfs import HANDLERS, aes, locked_pdf, rc4
from .pdf_files import ink_of

TEXT = "The code is 7421."


def test_the_ciphers_are_those_of_their_standards() -> None:
    plain = bytes.fromhex("00112233445566778899aabbccddeeff")  # FIPS 197, appendix C
    assert aes(bytes(range(16)), plain).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    assert aes(bytes(range(32)), plain).hex() == "8ea2b7ca516745bfeafc49904b496089"
    assert rc4(b"Key", b"Plaintext").hex() == "bbf316e8d940af0ad3"


@pytest.mark.parametrize("user", [b"secret", b""], ids=["a password", "an empty password"])
@pytest.mark.parametrize("how", HANDLERS)
def test_an_encrypted_pdf_is_refused(how: str, user: bytes) -> None:
    """PDFium reads it with the password, so it is encrypted and not merely broken."""
    data = locked_pdf(ink_of(TEXT), how, user)
    assert TEXT.encode() not in data
    with pypdfium2.PdfDocument(data, password=user.decode() or None) as document:
        assert document[0].get_textpage().get_text_range() == TEXT
    with pytest.raises(ValueError, match=f"^{LOCKED}$"):
        Pdf(data, nullcontext)
