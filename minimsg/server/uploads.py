"""The files that a body names, read before the body is: it is prepared where there is no store.

Looks for ids as bytes, so a body is not parsed twice; an id in a text costs a look and is
used for nothing. Next: `prompt/uploads.py`, which puts the texts in their places.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Final

from minimsg.errors import NotFound
from minimsg.limits import LIMITS
from minimsg.prompt.uploads import Upload
from minimsg.store import File
from minimsg.store.files import Files

SOURCE: Final = b'"file_id"'
ID: Final = re.compile(rb'"(file_[0-9A-Za-z]{10,64})"')
UNREADABLE: Final = ("audio/", "video/")
PDF: Final = "application/pdf"


async def read_uploads(files: Files, tenant: str, body: bytes) -> dict[str, Upload]:
    """Those files of `tenant`'s that `body` may mean, at most as many as a list may name."""
    if SOURCE not in body:
        return {}
    ids = list(dict.fromkeys(found.decode() for found in ID.findall(body)))[: LIMITS.file_ids]
    uploads: dict[str, Upload] = {}
    room = LIMITS.body_bytes
    for id in ids:
        try:
            file = await files.get(tenant, id)
            uploads[id] = await _read(files, file, room)
        except NotFound as error:
            if error.error_code == "file_expired":
                uploads[id] = Upload(why=error.message, has_expired=True)
            continue
        room -= file.size_bytes if uploads[id].num_chars else 0
    return uploads


async def _read(files: Files, file: File, room: int) -> Upload:
    kind = file.mime_type
    why = f"this model cannot read a file of type {kind}"
    if kind.startswith(UNREADABLE):
        return Upload(why=why, media_type=kind)
    is_image = kind.startswith("image/")
    if is_image and file.size_bytes > LIMITS.image_bytes:
        return Upload(why=f"image exceeds {LIMITS.image_bytes} bytes maximum")
    if file.size_bytes > room:
        return Upload(why=f"the files of a request may have {LIMITS.body_bytes} bytes together")
    try:
        data = await files.read(file.tenant, file.id)
        if is_image:
            return Upload(why=why, media_type=kind, image=b64encode(data).decode())
        if kind == PDF:
            return Upload(media_type=kind, pdf=b64encode(data).decode())
        return Upload(text=data.decode("utf-8-sig"), media_type=kind)
    except UnicodeDecodeError:
        return Upload(why="the file is not text in UTF-8", media_type=kind)
