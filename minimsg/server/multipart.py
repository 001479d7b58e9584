"""An upload's body: one file of any size, written to disk as it comes, and a few short fields.

aiohttp finds the parts; how much they hold and how long they take is counted here, and no
part is decoded. A form is what any web page may send to any address: `origin.py` has
refused those of pages that may not. Next: `files.py`, which keeps the file.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from minimsg.errors import InvalidRequest, RequestTooLarge, UnsupportedMediaType
from minimsg.limits import LIMITS
from minimsg.server.body import Pace, paced
from minimsg.store.blobs import Incoming

PIECE_BYTES: Final = 256 * 1024
FIELD_BYTES: Final = 1_024  # of a part that is not the file
AS_IT_IS: Final = ("binary", "8bit", "7bit")  # what a part's transfer encoding may be
MALFORMED: Final = "The request body is not a valid multipart form."


@dataclass
class Form:
    """What came besides the bytes; `filename` is None until the file has come."""

    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None
    content_type: str = ""


async def read_form(request: web.Request, incoming: Incoming) -> Form:
    """Write the part `file` to `incoming`, and return the rest.

    Raises InvalidRequest, RequestTimeout, RequestTooLarge, UnsupportedMediaType, StoreFull.
    """
    _check_headers(request)
    try:
        async with paced() as pace:
            form = await _read_parts(request, incoming, pace)
    except (web.RequestPayloadError, HttpProcessingError, ValueError, AssertionError):
        raise InvalidRequest("", MALFORMED) from None
    if form.filename is None:
        raise InvalidRequest("file", "Field required")
    return form


def _check_headers(request: web.Request) -> None:
    if request.content_type != "multipart/form-data":
        seen = request.headers.get("content-type", "none")[:80]
        raise UnsupportedMediaType(f"content-type: must be multipart/form-data, not {seen!r}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        why = "must be identity for an upload"
        code = "request_body_encoding_unsupported"
        raise InvalidRequest("content-encoding", why, error_code=code)
    if (request.content_length or 0) > LIMITS.file_bytes + LIMITS.body_bytes:
        raise _too_large()


async def _read_parts(request: web.Request, incoming: Incoming, pace: Pace) -> Form:
    form, num_parts = Form(), 0
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        num_parts += 1
        if num_parts > LIMITS.form_parts:
            raise InvalidRequest("", f"The form has more than {LIMITS.form_parts} parts.")
        if not isinstance(part, BodyPartReader):
            raise ValueError("a form within the form")
        if part.headers.get("content-transfer-encoding", "binary").lower() not in AS_IT_IS:
            raise InvalidRequest("content-transfer-encoding", "must be binary")
        name = part.name or ""
        if name == "file":
            await _take_file(part, incoming, form, pace)
        elif name in form.fields:
            raise InvalidRequest(name[:80], "may be given only once")
        else:
            form.fields[name] = await _short_text(part, pace)
    return form


async def _take_file(part: BodyPartReader, incoming: Incoming, form: Form, pace: Pace) -> None:
    if form.filename is not None:
        raise InvalidRequest("file", "may be given only once")
    form.filename = part.filename or ""
    form.content_type = part.headers.get("content-type", "")
    while data := await part.read_chunk(PIECE_BYTES):
        if incoming.size_bytes + len(data) > LIMITS.file_bytes:
            raise _too_large()
        await asyncio.to_thread(incoming.write, data)
        pace.count(len(data))


async def _short_text(part: BodyPartReader, pace: Pace) -> str:
    text = bytearray()
    while data := await part.read_chunk():
        text += data
        if len(text) > FIELD_BYTES:
            raise InvalidRequest((part.name or "")[:80], f"has more than {FIELD_BYTES} bytes")
        pace.count(len(data))
    return text.decode()


def _too_large() -> RequestTooLarge:
    return RequestTooLarge(f"File exceeds the maximum size of {LIMITS.file_bytes} bytes.")
