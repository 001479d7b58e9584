"""PDFs, written by hand, read as the text, the sizes and the looks of their pages."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

import pytest

from minimsg.limits import LIMITS
from minimsg.prompt.pdf import Pdf

from .pdf_files import file_of, ink_of, page_objects, pdf, red_square, stream

RED: Final = (255, 0, 0)
WHITE: Final = (255, 255, 255)


def read(data: bytes) -> Pdf:
    return Pdf(data, nullcontext)


def texts(data: bytes) -> list[str]:
    return [page.text for page in read(data).pages()]


def test_each_page_gives_its_text_in_order() -> None:
    assert texts(pdf("first page", "", "line one\nline two")) == [
        "first page",
        "",
        "line one\nline two",
    ]


def test_letters_beyond_latin_are_read_and_what_is_no_text_is_not() -> None:
    """By the font's own table: A is an emoji, B half a pair, C nothing, D a ligature."""
    table = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def "
        "1 begincodespacerange <00> <FF> endcodespacerange 4 beginbfchar "
        "<41> <D83DDE00> <42> <D800> <43> <0000> <44> <00660066> endbfchar endcmap end end"
    )
    objects = page_objects(ink_of("xAyBzCwDe"))
    objects[3] = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 4 0 R>>"
    objects[4] = stream(table.encode())
    assert texts(file_of(objects)) == ["x\U0001f600yzwffe"]


def test_a_page_is_drawn_as_it_is_to_be_seen() -> None:
    """A square near the lower left corner; turned by a quarter, it is near the upper left one."""
    upright = read(file_of(page_objects(red_square(0, 0)))).draw(1, 300, 200)
    turned = read(file_of(page_objects(red_square(0, 0), page="/Rotate 90"))).draw(1, 200, 300)
    assert (upright.mode, upright.size) == ("RGB", (300, 200))
    assert upright.getpixel((25, 175)) == RED
    assert upright.getpixel((25, 25)) == upright.getpixel((75, 175)) == WHITE
    assert turned.getpixel((25, 25)) == RED
    assert turned.getpixel((25, 275)) == turned.getpixel((175, 25)) == WHITE


@pytest.mark.parametrize(
    ("box", "page", "size"),
    [
        ("0 0 300 200", "", (450, 300)),
        ("0 0 300 200", "/Rotate 270", (300, 450)),
        ("0 0 300 200", "/CropBox[0 0 100 100]", (150, 150)),
        ("0 0 0 0", "", (918, 1188)),  # PDFium then takes a letter
        ("0 0 0.1 0.1", "", (1, 1)),
    ],
)
def test_a_page_asks_for_the_pixels_in_which_it_can_be_read(
    box: str, page: str, size: tuple[int, int]
) -> None:
    (found,) = read(pdf("x", box=box, page=page)).pages()
    assert (found.width, found.height) == size


def test_the_size_of_a_page_costs_no_more_than_the_limit() -> None:
    (page,) = read(pdf("wide", box="0 0 10000000 10000000")).pages()
    assert page.text == "wide"
    assert page.width * page.height <= LIMITS.pdf_page_pixels
    assert page.draw(64, 64).size == (64, 64)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "PDF cannot be empty"),
        (b"hello", "The PDF specified was not valid."),
        (pdf("cut")[:150], "The PDF specified was not valid."),
        (file_of(page_objects()), "The PDF specified was not valid."),  # no pages
        (pdf("x").replace(b"/Count 1", b"/Count 9"), "The PDF specified was not valid."),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_words_of_the_api(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        texts(data)


def test_a_pdf_is_not_said_to_be_locked_because_one_before_it_was() -> None:
    """PDFium keeps the number of its last failure, and gives none to a file without pages."""
    handler = "<</Filter/Standard/V 1/R 2/O<00>/U<00>/P -4>>"
    trailer = "/Root 1 0 R/Encrypt 50 0 R/ID[<00><00>]"
    locked = file_of(page_objects(b"x") | {50: handler}, trailer)
    with pytest.raises(ValueError, match="password protected"):
        read(locked)
    with pytest.raises(ValueError, match="was not valid"):
        read(listed_pdf())


def test_a_pdf_that_certificates_open_is_locked_too() -> None:
    handler = "<</Filter/Adobe.PubSec/SubFilter/adbe.pkcs7.s4/V 1/Recipients[<00>]>>"
    with pytest.raises(ValueError, match="password protected"):
        read(file_of(page_objects(b"x") | {50: handler}, "/Root 1 0 R/Encrypt 50 0 R"))


def listed_pdf() -> bytes:
    """A PDF without pages whose table of places is right, so that nothing of it is mended."""
    objects = [b"1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n"]
    objects.append(b"2 0 obj <</Type/Pages/Count 0/Kids[]>> endobj\n")
    head = b"%PDF-1.7\n"
    places = [len(head), len(head) + len(objects[0])]
    table = b"xref\n0 3\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % p for p in places)
    start = len(head) + sum(map(len, objects))
    end = b"trailer <</Root 1 0 R/Size 3>>\nstartxref\n%d\n%%%%EOF\n" % start
    return head + b"".join(objects) + table + end
