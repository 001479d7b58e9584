"""Documents that are uploaded files: their text in the place of their id, before anything reads it.

From there on such a document is a document as text: rules, prompt and cache see no
difference. Knows requests and texts; where a file's text comes from is the caller's matter
(`server/uploads.py`). A picture or PDF in a file stays what it is, and `rules/` refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from minimsg.errors import InvalidRequest, NotFound
from minimsg.protocol.content import (
    ContentBlock,
    DocumentBlock,
    FileSource,
    TextSource,
    ToolResultBlock,
)
from minimsg.protocol.request import PromptRequest

R = TypeVar("R", bound=PromptRequest)
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a request names: its text, or why there is none."""

    text: str | None = None
    why: str = ""
    has_expired: bool = False


def with_uploads(request: R, uploads: Mapping[str, Upload]) -> R:
    """`request` with the text of each file that is a document. Raises InvalidRequest, NotFound."""
    messages = []
    for n, message in enumerate(request.messages):
        content = [
            _resolved(block, f"messages.{n}.content.{place}", uploads)
            for place, block in enumerate(message.content)
        ]
        is_same = all(new is old for new, old in zip(content, message.content, strict=True))
        messages.append(message if is_same else message.model_copy(update={"content": content}))
    return request.model_copy(update={"messages": messages})


def _resolved(block: ContentBlock, path: str, uploads: Mapping[str, Upload]) -> ContentBlock:
    if not isinstance(block, ToolResultBlock):
        return _read(block, path, uploads)
    parts = [
        _read(part, f"{path}.tool_result.content.{place}", uploads)
        for place, part in enumerate(block.content)
    ]
    is_same = all(new is old for new, old in zip(parts, block.content, strict=True))
    return block if is_same else block.model_copy(update={"content": parts})


def _read(block: B, path: str, uploads: Mapping[str, Upload]) -> B:
    if not isinstance(block, DocumentBlock) or not isinstance(block.source, FileSource):
        return block
    path = f"{path}.document.source.file.file_id"
    upload = uploads.get(block.source.file_id)
    if upload is None:
        raise NotFound(f"{path}: no file has that id")
    if upload.has_expired:
        raise NotFound(f"{path}: {upload.why}", error_code="file_expired")
    if upload.text is None:
        raise InvalidRequest(path, upload.why)
    source = TextSource(type="text", media_type="text/plain", data=upload.text)
    return block.model_copy(update={"source": source})
