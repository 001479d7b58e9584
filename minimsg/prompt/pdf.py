"""Bytes to the pages of a PDF: their text layer, their sizes, and how they look.

PDFium reads, which is not thread safe, may break at a hostile file, and cannot be stopped:
whatever calls it runs within a guard that the caller brings (`server/pdf_guard.py`), in a process
that may end. Limits come before work: bytes, pages, then what the pages hold. A page's size
is only believed to be a shape: what is drawn has as many pixels as the limit says at most.
Scripts, forms and attachments are not even opened. Every failure is a ValueError in the
API's words.

Knows bytes; whose they are and how many there may be is in `pdfs.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from minimsg.limits import LIMITS

if TYPE_CHECKING:
    from PIL.Image import Image

Guard = Callable[[], AbstractContextManager[None]]

EMPTY: Final = "PDF cannot be empty"  # these sentences are the API's
INVALID: Final = "The PDF specified was not valid."
LOCKED: Final = "The PDF specified is password protected."
UNREADABLE: Final = "Could not process PDF"

LOCKS: Final = (4, 5)  # PDFium's numbers: by a password, by what it does not know (certificates)
NOT_ENCRYPTED: Final = -1
PIXELS_PER_POINT: Final = 1.5  # 108 to an inch: text of 8 points has 12 pixels
# Of what PDFium gives, what is no text: marks of hyphens at line ends, and control characters.
NO_TEXT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


class Pdf:
    """An open PDF; `guard` is entered around everything that PDFium does."""

    def __init__(self, data: bytes, guard: Guard) -> None:
        """Raises ValueError."""
        if not data:
            raise ValueError(EMPTY)
        self._guard = guard
        with guard():
            self._document = _opened(data)
            self.num_pages = len(self._document)
        if self.num_pages < 1:
            raise ValueError(INVALID)

    def pages(self) -> list[Page]:
        """Every page with its text. Raises ValueError."""
        with self._guard():
            return [self._page(number) for number in range(1, self.num_pages + 1)]

    def draw(self, number: int, width: int, height: int) -> Image:
        """Page `number` of this size in RGB, on white. Raises ValueError."""
        with self._guard():
            return _drawn(self._document, number - 1, width, height)

    def _page(self, number: int) -> Page:
        from pypdfium2 import PdfiumError

        try:
            width, height = self._document.get_page_size(number - 1)
            text = self._document[number - 1].get_textpage().get_text_range()
        except PdfiumError:
            raise ValueError(INVALID) from None
        text = NO_TEXT.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
        return Page(self, number, text, *_pixels(width, height))


@dataclass(frozen=True, slots=True)
class Page:
    """What is to be read of a page. Its picture is drawn when it is asked for."""

    pdf: Pdf
    number: int  # from 1
    text: str
    width: int  # pixels in which it can be read well
    height: int

    def draw(self, width: int, height: int) -> Image:
        """Its picture of this size. Raises ValueError."""
        return self.pdf.draw(self.number, width, height)


def _opened(data: bytes) -> Any:
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_GetSecurityHandlerRevision, FPDF_LoadMemDocument

    # It fails, which is the point: a failure without a number shows the one before, and that
    # may be another PDF's.
    FPDF_LoadMemDocument(b"", 0, None)
    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        is_locked = getattr(error, "err_code", None) in LOCKS
        raise ValueError(LOCKED if is_locked else INVALID) from None
    if FPDF_GetSecurityHandlerRevision(document) != NOT_ENCRYPTED:  # a password that is empty
        raise ValueError(LOCKED)
    return document


def _pixels(width: float, height: float) -> tuple[int, int]:
    """The size of a picture of a page of so many points."""
    most = LIMITS.pdf_page_pixels
    scale = min(PIXELS_PER_POINT, math.sqrt(most / max(width * height, 1)))
    return max(1, int(width * scale)), max(1, int(height * scale))


def _drawn(document: Any, index: int, width: int, height: int) -> Image:
    from pypdfium2 import PdfBitmap, PdfiumError
    from pypdfium2.raw import FPDF_ANNOT, FPDF_RenderPageBitmap, FPDFBitmap_BGRx

    try:
        page = document[index]
        bitmap = PdfBitmap.new_native(width, height, FPDFBitmap_BGRx)
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
    except PdfiumError:
        raise ValueError(UNREADABLE) from None
    FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, FPDF_ANNOT)
    picture: Image = bitmap.to_pil().convert("RGB")
    return picture
