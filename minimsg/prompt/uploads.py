"""What is in uploaded files: text or an image in the place of its id, before anything reads it.

From there on such a document is a document as text, and such an image has its bytes beside
it: rules, prompt and cache see no difference. Knows requests and contents; where a file's
comes from is the caller's matter (`server/uploads.py`). A PDF in a file stays what it is, and
`rules/` refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from minimsg.errors import InvalidRequest, NotFound
from minimsg.prompt.blocks import map_blocks
from minimsg.prompt.picture import MEDIA_TYPES
from minimsg.prompt.pictures import FetchedSource
from minimsg.protocol.content import DocumentBlock, FileSource, ImageBlock, TextSource
from minimsg.protocol.request import PromptRequest
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

    @property
    def num_chars(self) -> int:
        """That a request grows by."""
        return len(self.text or "") + len(self.image or "")


def with_uploads(request: R, uploads: Mapping[str, Upload], *, sees: bool) -> R:
    """`request` with each file that is a document or, for a model that `sees`, an image.

    Raises InvalidRequest, NotFound.
    """
    kinds = (DocumentBlock, ImageBlock) if sees else (DocumentBlock,)

    def resolved(block: Wire, path: str) -> Wire:
        if not isinstance(block, kinds):
            return block
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


def _text_of(upload: Upload, path: str) -> TextSource:
    if upload.text is None:
        raise InvalidRequest(path, upload.why)
    return TextSource(type="text", media_type="text/plain", data=upload.text)


def _image_of(upload: Upload, path: str) -> FetchedSource:
    known = MEDIA_TYPES.values()
    if upload.image is None or upload.media_type not in known:
        kinds = f"a file of type {upload.media_type} is no image; there are {', '.join(known)}"
        raise InvalidRequest(path, kinds if upload.media_type else upload.why)
    return FetchedSource.model_construct(
        type="base64", media_type=upload.media_type, data=upload.image, kind="file"
    )
