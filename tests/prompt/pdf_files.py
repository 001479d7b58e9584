"""PDFs written by hand, object by object; without a table of places, which PDFium mends."""

from __future__ import annotations

import base64
import zlib
from typing import Any


def stream(data: bytes, entries: str = "") -> bytes:
    """The value of an object that holds bytes."""
    return f"<<{entries}/Length {len(data)}>> stream\n".encode() + data + b"\nendstream"


def file_of(objects: dict[int, bytes | str], trailer: str = "/Root 1 0 R") -> bytes:
    """A PDF of numbered objects."""
    written = [
        b"%d 0 obj %s endobj" % (number, value if isinstance(value, bytes) else value.encode())
        for number, value in objects.items()
    ]
    end = f"trailer <<{trailer}>>".encode()
    return b"\n".join([b"%PDF-1.7", *written, end, b"%%EOF"])


def page_objects(*inks: bytes, box: str = "0 0 300 200", page: str = "") -> dict[int, bytes | str]:
    """The objects of a PDF with a page for each content stream of `inks`; font F is Helvetica."""
    kids = " ".join(f"{10 + 2 * n} 0 R" for n in range(len(inks)))
    objects: dict[int, bytes | str] = {
        1: "<</Type/Catalog/Pages 2 0 R>>",
        2: f"<</Type/Pages/Kids[{kids}]/Count {len(inks)}>>",
        3: "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    }
    for n, ink in enumerate(inks):
        objects[10 + 2 * n] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[{box}]{page}"
            f"/Resources<</Font<</F 3 0 R>>>>/Contents {11 + 2 * n} 0 R>>"
        )
        objects[11 + 2 * n] = stream(zlib.compress(ink), "/Filter/FlateDecode")
    return objects


def ink_of(text: str) -> bytes:
    """A content stream that writes lines of text; parentheses in them must be balanced."""
    lines = text.split("\n")
    moves = "".join(f"({line}) Tj 0 -15 Td " for line in lines)
    return f"BT /F 12 Tf 20 150 Td {moves} ET\n".encode("latin-1") if text else b""


def pdf(*texts: str, **options: str) -> bytes:
    """A PDF with a page for each text."""
    return file_of(page_objects(*map(ink_of, texts), **options))


def red_square(x: int, y: int) -> bytes:
    """A content stream that paints a square of 50 points; `y` counts from below."""
    return f"1 0 0 rg {x} {y} 50 50 re f\n".encode()


def document(data: bytes, **fields: Any) -> dict[str, Any]:
    """A document block with the PDF `data`."""
    encoded = base64.b64encode(data).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": encoded}
    return {"type": "document", "source": source, **fields}
