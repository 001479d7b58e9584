"""The text layer of a PDF, page by page, each between tags with its number.

    <page number="1">
    ...
    </page>

A page without text is empty between its tags. Limits come before work: bytes, then pages.
Nothing is drawn here, so the size of a page costs nothing. PDFium is not thread safe and may
break at a hostile file: call this only in a worker process (`server/prepare_process.py`).
Knows no requests and no blocks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from minimsg.limits import LIMITS

FORM_PASSWORD: Final = 4  # PDFium's number for "a password is needed"
INSTALL: Final = 'PDFs need pypdfium2: pip install "minimsg[pdf]"'


def pdf_text(data: bytes) -> str:
    """What a model reads of the PDF `data`. Raises ValueError with words for the client."""
    pages = page_texts(data)
    return "\n".join(
        f'<page number="{number}">\n{text}\n</page>' for number, text in enumerate(pages, 1)
    )


def page_texts(data: bytes) -> list[str]:
    """The text of each page. Raises ValueError with words for the client."""
    if not data:
        raise ValueError("The PDF is empty")
    try:
        pdfium = import_module("pypdfium2")
    except ImportError:
        raise ValueError(INSTALL) from None
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == FORM_PASSWORD
        why = "The PDF is encrypted" if is_locked else "The PDF is not valid"
        raise ValueError(why) from None
    try:
        _check_count(len(document))
        return [_text(document, number) for number in range(len(document))]
    except pdfium.PdfiumError:
        raise ValueError("The PDF has a page that cannot be read") from None
    finally:
        document.close()


def _check_count(num_pages: int) -> None:
    if num_pages == 0:
        raise ValueError("The PDF has no pages")
    if num_pages > LIMITS.pdf_pages:
        raise ValueError(f"too many PDF pages: {num_pages} > {LIMITS.pdf_pages} maximum")


def _text(document: object, number: int) -> str:
    page = document[number]  # type: ignore[index]
    text: str = page.get_textpage().get_text_range()
    return text.replace("\r\n", "\n").strip()
