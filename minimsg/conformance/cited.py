"""What expressions ask about citations: what stands where they say, and a PDF to be cited.

A citation says where its text is: in which document or search result, from which character,
page or block, to which. `spans` reads that place again in what was sent, so that a case can
hold both texts against each other. Knows neither replies nor cases; listed in `functions.py`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

Citation = Mapping[str, Any]

FONT: Final = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
FONT_SIZE: Final = 8
PAGE_SIZE: Final = (2_000, 100)  # one line, however long a short reply is


def picked(items: Sequence[object], cited: Sequence[Citation], key: str) -> list[object]:
    """For each citation the item of the number that its `key` says; null where there is none."""
    return [_item(items, citation.get(key)) for citation in cited]


def spans(
    wholes: Sequence[str | list[str] | None], cited: Sequence[Citation], begin: str, end: str
) -> list[str | None]:
    """For each citation what stands in the text, or the list of texts, beside it.

    `begin` and `end` are the keys of its indices. Null for a place that is none.
    """
    return [
        _span(whole, citation.get(begin), citation.get(end))
        for whole, citation in zip(wholes, cited, strict=True)
    ]


def within(parts: Sequence[str], wholes: Sequence[str | None]) -> bool:
    """Whether each text is inside the one beside it, white space aside."""
    pairs = zip(parts, wholes, strict=True)
    return all(whole is not None and _squeezed(part) in _squeezed(whole) for part, whole in pairs)


def pdf(*pages: str) -> str:
    """A PDF in base64 with a line of text on each page."""
    numbers = range(len(pages))
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in numbers)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        FONT,
    ]
    for number in numbers:
        objects += [_page(5 + 2 * number), _line(pages[number])]
    return base64.b64encode(_file(objects)).decode()


def _item(items: Sequence[object], number: object) -> object:
    return items[number] if type(number) is int and 0 <= number < len(items) else None


def _span(whole: str | list[str] | None, begin: object, end: object) -> str | None:
    if whole is None or type(begin) is not int or type(end) is not int:
        return None
    return "".join(whole[begin:end]) if 0 <= begin < end <= len(whole) else None


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _page(content: int) -> bytes:
    width, height = PAGE_SIZE
    resources = "/Resources<</Font<</F 3 0 R>>>>"
    box = f"/MediaBox[0 0 {width} {height}]"
    return f"<</Type/Page/Parent 2 0 R{box}{resources}/Contents {content} 0 R>>".encode()


def _line(text: str) -> bytes:
    written = text.encode("cp1252", "replace").hex()
    ink = f"BT /F {FONT_SIZE} Tf 10 50 Td <{written}> Tj ET".encode()
    return b"<</Length %d>>stream\n%s\nendstream" % (len(ink), ink)


def _file(objects: Sequence[bytes]) -> bytes:
    """Objects as a file, numbered from 1; the first is the catalog."""
    data, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    end = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (size, len(data))
    return data + head + table + end
