"""What requests only name: text or bytes in the place of a file's id or a URL, before any reads it.

From there on such a document is a document as text or a PDF, and such an image has its bytes
beside it: rules, prompt and cache see no difference. Knows requests and contents; where a file's
comes from is the caller's matter (`server/uploads.py`), and so is who fetches what a URL names
(`server/fetch.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import Field

from minimsg.errors import InvalidRequest, NotFound
from minimsg.prompt.blocks import map_blocks
from minimsg.prompt.pdfs import FetchedPdf, PdfPages
from minimsg.prompt.picture import MEDIA_TYPES
from minimsg.prompt.pictures import FetchedSource
from minimsg.protocol.content import (
    DocumentBlock,
    FileSource,
    ImageBlock,
    TextSource,
    UrlSource,
)
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import blocks_of
from minimsg.protocol.wire import Wire

R = TypeVar("R", bound=PromptRequest)


class FiledText(TextSource):
    """Text that was not in the request but named there."""

    file_id: str | None = Field(default=None, exclude=True)


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a request names: its text, or its image, or why there is neither."""

    text: str | None = None
    why: str = ""
    has_expired: bool = False
    media_type: str = ""
    image: str | None = None  # in base64
    pdf: str | None = None  # in base64

    @property
    def num_chars(self) -> int:
        """That a request grows by."""
        return len(self.text or "") + len(self.image or "") + len(self.pdf or "")


@dataclass(frozen=True, slots=True)
class Named:
    """A source that is a URL: of what kind of block, and the source's path."""

    url: str
    kind: Literal["image", "document"]
    path: str


def may_name_urls(body: bytes) -> bool:
    """False only if it names none: the word may be written with escapes."""
    return b'"url"' in body or b"\\u" in body


def _kinds(*, sees: bool) -> tuple[type[DocumentBlock] | type[ImageBlock], ...]:
    """The blocks whose sources a model reads."""
    return (DocumentBlock, ImageBlock) if sees else (DocumentBlock,)


def urls_in(request: PromptRequest, *, sees: bool) -> tuple[Named, ...]:
    """The sources that are URLs; of images only for a model that `sees`."""
    kinds = _kinds(sees=sees)
    return tuple(
        Named(block.source.url, block.type, f"{path}.{block.type}.source.url")
        for path, block in blocks_of(request.messages, *kinds, inside=True)
        if isinstance(block.source, UrlSource)
    )


def with_uploads(
    request: R,
    uploads: Mapping[str, Upload],
    fetched: Mapping[str, Upload] | None = None,
    *,
    sees: bool,
) -> R:
    """`request` with each file that is a document or, for a model that `sees`, an image.

    So with what was `fetched`; other URLs stay. Raises InvalidRequest, NotFound.
    """
    kinds = _kinds(sees=sees)

    def resolved(block: Wire, path: str) -> Wire:
        if not isinstance(block, kinds):
            return block
        if isinstance(block.source, UrlSource):
            field, upload = "url", (fetched or {}).get(block.source.url)
        elif isinstance(block.source, FileSource):
            field = "file_id"
            upload = _upload(block.source.file_id, f"{path}.{block.type}.source.file", uploads)
        else:
            return block
        if upload is None:
            return block
        kind = block.source.type
        make = _document_of if isinstance(block, DocumentBlock) else _image_of
        source = make(upload, f"{path}.{block.type}.source.{kind}.{field}", kind)
        if isinstance(block.source, FileSource) and isinstance(source, (FiledText, FetchedPdf)):
            source = source.model_copy(update={"file_id": block.source.file_id})
        return block.model_copy(update={"source": source})

    return map_blocks(request, resolved)


def _upload(id: str, path: str, uploads: Mapping[str, Upload]) -> Upload:
    upload = uploads.get(id)
    if upload is None:
        raise NotFound(f"{path}.file_id: no file has that id")
    if upload.has_expired:
        raise NotFound(f"{path}.file_id: {upload.why}", error_code="file_expired")
    return upload


def _document_of(upload: Upload, path: str, kind: str) -> FiledText | FetchedPdf:
    if upload.pdf is not None:
        return FetchedPdf.model_construct(
            type="base64", media_type="application/pdf", data=upload.pdf, kind=kind
        )
    if upload.text is None:
        raise InvalidRequest(path, upload.why or f"{upload.media_type} is no document")
    return FiledText(type="text", media_type="text/plain", data=upload.text)


def _image_of(upload: Upload, path: str, kind: str) -> FetchedSource:
    known = MEDIA_TYPES.values()
    if upload.image is None or upload.media_type not in known:
        kinds = f"a file of type {upload.media_type} is no image; there are {', '.join(known)}"
        raise InvalidRequest(path, kinds if upload.media_type else upload.why)
    return FetchedSource.model_construct(
        type="base64", media_type=upload.media_type, data=upload.image, kind=kind
    )


def file_id_of(block: DocumentBlock) -> str | None:
    """The id of the file that `block` named, if it was one."""
    source = block.source
    return source.file_id if isinstance(source, (FiledText, FetchedPdf, PdfPages)) else None
