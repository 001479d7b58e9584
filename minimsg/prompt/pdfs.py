"""The PDFs of a request, read: each becomes a document of pages, in place of its bytes.

    <page number="1">
    (its picture, for a model that sees)
    its text layer, which may be empty
    </page>

A page's picture counts like an image by its tokens and pixels, but is only drawn once the
prompt is known to fit (`pictures.py`). Limits come before work: base64, then how many pages
all PDFs have, then their text.

Knows requests and paths; what PDFium does is in `pdf.py`, how a document reads in
`documents.py`.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from typing import TypeVar

from pydantic import Field

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.prompt.blocks import map_blocks
from minimsg.prompt.pdf import UNREADABLE, Page, Pdf
from minimsg.prompt.pictures import PageSource
from minimsg.protocol.content import (
    Base64PdfSource,
    ContentSource,
    DocumentBlock,
    ImageBlock,
    TextBlock,
)
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.wire import Wire

R = TypeVar("R", bound=PromptRequest)
PathGuard = Callable[[str], AbstractContextManager[None]]  # around the work on the PDF at a path


class FetchedPdf(Base64PdfSource):
    """Bytes that were not in the request but named there."""

    kind: str = Field(exclude=True)  # of the source that named them: file, url
    file_id: str | None = Field(default=None, exclude=True)  # by which it was named


class PdfPages(ContentSource):
    """A PDF that was read.

    Invariant: `content` is, page for page, a picture (for a model that sees) and one text.
    """

    file_id: str | None = Field(default=None, exclude=True)  # by which it was named

    @property
    def texts(self) -> list[str]:
        """The text of each page; the first is that of page 1."""
        return [block.text for block in self.content if isinstance(block, TextBlock)]

    @property
    def pictures(self) -> list[ImageBlock]:
        """The picture of each page; none for a model that does not see."""
        return [block for block in self.content if isinstance(block, ImageBlock)]


def with_pdfs(request: R, guard: PathGuard | None, *, sees: bool) -> R:
    """`request` with every PDF read, each once, with pictures for a model that `sees`.

    Without a `guard` there may be none. Raises InvalidRequest.
    """
    return map_blocks(request, Reader(guard, sees).read)


class Reader:
    """Reads the PDFs of one request, which share its limits."""

    def __init__(self, guard: PathGuard | None, sees: bool) -> None:
        self._guard = guard
        self._sees = sees
        self._num_pages = 0
        self._num_chars = 0

    def read(self, block: Wire, path: str) -> Wire:
        """`block`, or its pages if it is a PDF. Raises InvalidRequest."""
        if not isinstance(block, DocumentBlock) or not isinstance(block.source, Base64PdfSource):
            return block
        assert self._guard is not None, "a request with a PDF is prepared in a process"
        path = f"{path}.document.source.{_place(block.source)}"
        try:
            data = a2b_base64(block.source.data, strict_mode=True)
        except ValueError:
            raise InvalidRequest(path, "Invalid base64 data") from None
        try:
            pages = self._pages(Pdf(data, partial(self._guard, path)))
        except (ValueError, MemoryError) as error:
            raise InvalidRequest(path, str(error) or UNREADABLE) from None
        digest = sha256(data).hexdigest()
        content = [part for page in pages for part in self._blocks(page, path, digest)]
        file_id = block.source.file_id if isinstance(block.source, FetchedPdf) else None
        source = PdfPages.model_construct(type="content", content=content, file_id=file_id)
        return block.model_copy(update={"source": source})

    def _pages(self, pdf: Pdf) -> list[Page]:
        """Raises ValueError."""
        self._num_pages += pdf.num_pages
        if self._num_pages > LIMITS.pdf_pages:
            raise ValueError(f"A maximum of {LIMITS.pdf_pages} PDF pages may be provided.")
        pages = pdf.pages()
        self._num_chars += sum(len(page.text) for page in pages)
        if self._num_chars > LIMITS.body_bytes:
            most = LIMITS.body_bytes
            raise ValueError(f"the text of all PDFs is longer than {most} characters maximum")
        return pages

    def _blocks(self, page: Page, path: str, digest: str) -> list[TextBlock | ImageBlock]:
        text = TextBlock.model_construct(type="text", text=page.text)
        if not self._sees:
            return [text]
        name = f"{digest}#{page.number}"
        source = PageSource.model_construct(
            type="base64", media_type="image/png", data=name, page=page, path=path
        )
        return [ImageBlock.model_construct(type="image", source=source), text]


def _place(source: Base64PdfSource) -> str:
    """The field that holds or names the PDF."""
    kind = source.kind if isinstance(source, FetchedPdf) else source.type
    return {"base64": "base64.data", "file": "file.file_id", "url": "url.url"}[kind]
