"""Uploaded files as data: what may be asked of /v1/files, and what it says of a file.

Knows the shapes, and what a client's name for a file may be: a label, whose path and
control characters are dropped, never a place on disk. Knows nothing of where bytes lie.
Source: Messages API reference, Files.
"""

from __future__ import annotations

import mimetypes
import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.wire import Wire

HOUR_S: Final = 3_600
MAX_LIFE_S: Final = 90 * 24 * HOUR_S

SEPARATORS: Final = re.compile(r"[/\\]")
# Controls, separators of lines, and the marks that turn text round: `exe.gnp` as `png.exe`.
UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
NO_CHARACTER: Final = re.compile(r"[\ud800-\udfff]")  # bytes of a header that are not UTF-8
MEDIA_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,63}/[a-z0-9!#$&^_.+-]{1,63}")
ANY_BYTES: Final = "application/octet-stream"
MAX_EXTENSION_CHARS: Final = 32  # that a name keeps when it is cut
PAGE: Final = re.compile(r"page_([1-9][0-9]{0,17})")


class UploadFields(Wire):
    """What an upload may say besides the file; comes from a form, so numbers are text."""

    expires_in_seconds: int | None = Field(default=None, ge=HOUR_S, le=MAX_LIFE_S, strict=False)


class UploadForm(UploadFields):
    """The whole form, for the OpenAPI document: its bytes are never a value here."""

    file: Annotated[str, Field(json_schema_extra={"format": "binary"})]


class FilesQuery(Wire):
    """Which files are asked for; comes from a query string, so numbers are text."""

    limit: int = Field(default=20, ge=1, le=LIMITS.page_items, strict=False)
    page: str | None = None
    ids: Annotated[list[str] | None, Field(alias="ids[]")] = None

    @model_validator(mode="after")
    def _is_one_question(self) -> Self:
        if self.ids is None:
            return self
        if self.model_fields_set & {"limit", "page"}:
            raise InvalidRequest("ids", "cannot be combined with limit or page")
        if len(set(self.ids)) > LIMITS.file_ids:
            raise InvalidRequest("ids", f"{len(set(self.ids))} ids > {LIMITS.file_ids} maximum")
        return self

    @property
    def below(self) -> int | None:
        """The number that the page begins below; None: the newest. Raises InvalidRequest."""
        if self.page is None:
            return None
        found = PAGE.fullmatch(self.page)
        if found is None:
            raise InvalidRequest("page", "is no page that this server has named")
        return int(found[1])


class FileMetadata(TypedDict):
    """What is known of a file."""

    id: str
    type: Literal["file"]
    filename: str
    mime_type: str
    size_bytes: int
    created_at: str  # RFC 3339
    expires_at: str | None
    downloadable: Literal[False]  # what a client has uploaded it has


class FilePage(TypedDict):
    """A part of the files, newest first; `next_page` asks for the next one."""

    data: list[FileMetadata]
    has_more: bool
    next_page: str | None


class DeletedFile(TypedDict):
    """The answer to DELETE."""

    id: str
    type: Literal["file_deleted"]


def file_page(files: list[FileMetadata], next_below: int | None) -> FilePage:
    """`files`, and how to ask for those below number `next_below`."""
    next_page = None if next_below is None else f"page_{next_below}"
    return {"data": files, "has_more": next_below is not None, "next_page": next_page}


def media_type_of(said: str, filename: str) -> str:
    """What a client says its file is; if it says nothing, what the name does."""
    said = said.partition(";")[0].strip().lower()
    if MEDIA_TYPE.fullmatch(said) and said != ANY_BYTES:
        return said
    return mimetypes.guess_type(filename)[0] or ANY_BYTES


def stored_name(filename: str, media_type: str) -> str:
    """The last part of the path that `filename` may be, cut to what may be shown."""
    name = NO_CHARACTER.sub("\ufffd", SEPARATORS.split(filename)[-1])
    name = UNPRINTABLE.sub("", name).strip()
    if not name.strip("."):
        return "unnamed" + (mimetypes.guess_extension(media_type) or "")
    if len(name) <= LIMITS.filename_chars:
        return name
    _, dot, extension = name.rpartition(".")
    end = dot + extension if len(extension) < MAX_EXTENSION_CHARS else ""
    return name[: LIMITS.filename_chars - len(end)] + end
