"""PDFs, written by hand, read as the text of their pages."""

from __future__ import annotations

import pytest

from minimsg.prompt.pdf import page_texts, pdf_text


def written(*texts: str, box: int = 300) -> bytes:
    """A PDF with a page for each of `texts`; without a table of places, which PDFium mends."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(texts)))
    objects = [
        "1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
        f"2 0 obj <</Type/Pages/Kids[{kids}]/Count {len(texts)}>> endobj",
        "3 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj",
    ]
    for n, text in enumerate(texts):
        ink = f"BT /F 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
        objects += [
            f"{10 + 2 * n} 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 {box} {box}]"
            f"/Resources<</Font<</F 3 0 R>>>>/Contents {11 + 2 * n} 0 R>> endobj",
            f"{11 + 2 * n} 0 obj <</Length {len(ink)}>> stream\n{ink}\nendstream endobj",
        ]
    return "\n".join(["%PDF-1.7", *objects, "trailer <</Root 1 0 R>>", "%%EOF"]).encode()


def test_each_page_is_read_between_tags_with_its_number() -> None:
    shown = '<page number="1">\nfirst\n</page>\n<page number="2">\n\n</page>'
    assert pdf_text(written("first", "")) == shown


def test_the_size_of_a_page_costs_nothing() -> None:
    assert page_texts(written("wide", box=10_000_000)) == ["wide"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"hello", "not valid"),
        (written(*[""] * 601), "too many PDF pages: 601 > 600 maximum"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        page_texts(data)
