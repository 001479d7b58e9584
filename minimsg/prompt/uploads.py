"""What requests only name: text or bytes in the place of a file's id or a URL, before any reads it.

From there on such a document is a document as text, and such an image has its bytes beside
it: rules, prompt and cache see no difference. Knows requests and contents; where a file's
comes from is the caller's matter (`server/uploads.py`), and so is who fetches what a URL names
(`server/fetch.py`). A PDF in a file stays what it is, and `rules/` refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from minimsg.errors import InvalidRequest, NotFound
from minimsg.prompt.blocks import map_blocks
from minimsg.prompt.picture import MEDIA_TYPES
from minimsg.prompt.pictures import FetchedSource
from minimsg.protocol.content import (
    Base64PdfSource,
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
            upload = (fetched or {}).get(block.source.url)
            return block if upload is None else _with_fetched(block, upload, path)
        if not isinstance(block.source, FileSource):
            return block
        path = f"{path}.{block.type}.source.file.file_id"
        upload = _upload(block.source.file_id, path, uploads)
        make = _text_of if isinstance(block, DocumentBlock) else _image_of
        return block.model_copy(update={"source": make(upload, path)})

    return map_blocks(request, resolved)


def _upload(id: str, path: str, uploads: Mapping[str, Upload]) -> Upload:
    upload = uploads.get(id)
    if upload is None:
        raise NotFound(f"{path}: no file has that id")
    if upload.has_expired:
        raise NotFound(f"{path}: {upload.why}", error_code="file_expired")
    return upload


def _with_fetched(block: DocumentBlock | ImageBlock, upload: Upload, path: str) -> Wire:
    path = f"{path}.{block.type}.source.url"
    source: Wire
    if isinstance(block, ImageBlock):
        source = _image_of(upload, f"{path}.url", "url")
    elif upload.pdf is not None:
        media_type = "application/pdf"
        source = Base64PdfSource.model_construct(
            type="base64", media_type=media_type, data=upload.pdf
        )
    else:
        source = _text_of(upload, f"{path}.url")
    return block.model_copy(update={"source": source})


def _text_of(upload: Upload, path: str) -> TextSource:
    if upload.text is None:
        raise InvalidRequest(path, upload.why or f"{upload.media_type} is no document")
    return TextSource(type="text", media_type="text/plain", data=upload.text)


def _image_of(upload: Upload, path: str, kind: str = "file") -> FetchedSource:
    known = MEDIA_TYPES.values()
    if upload.image is None or upload.media_type not in known:
        kinds = f"a file of type {upload.media_type} is no image; there are {', '.join(known)}"
        raise InvalidRequest(path, kinds if upload.media_type else upload.why)
    return FetchedSource.model_construct(
        type="base64", media_type=upload.media_type, data=upload.image, kind=kind
    )
