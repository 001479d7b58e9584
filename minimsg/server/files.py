"""/v1/files: keep a file, tell what there is, forget one.

A file that a client has uploaded is not given back, as hosted; it is there to be named in
requests. Ids are looked up by tenant before anything else is done with them. Next:
`multipart.py` for the body of an upload, `store/files.py` for where it goes.
"""

from __future__ import annotations

from aiohttp import web

from minimsg.errors import InvalidRequest
from minimsg.protocol.files import (
    DeletedFile,
    FileMetadata,
    FilesQuery,
    UploadFields,
    file_page,
    media_type_of,
    stored_name,
)
from minimsg.protocol.message import new_id
from minimsg.protocol.timestamps import rfc3339
from minimsg.protocol.validation import validate
from minimsg.server.auth import TENANT
from minimsg.server.dialect import dialect_of
from minimsg.server.multipart import read_form
from minimsg.server.query import read_query
from minimsg.server.respond import ignored_header, json_response
from minimsg.server.state import SERVER
from minimsg.store import File
from minimsg.store.files import NEWEST


async def upload_file(request: web.Request) -> web.Response:
    """Keep the file of a form. Raises RequestError."""
    dialect, files = dialect_of(request), request.app[SERVER].store.files
    async with files.receive() as incoming:
        form = await read_form(request, incoming)
        checked = validate(UploadFields, form.fields, dialect)
        filename = form.filename or ""
        media_type = media_type_of(form.content_type, filename)
        file = await files.add(
            request[TENANT],
            new_id("file_"),
            incoming,
            filename=stored_name(filename, media_type),
            mime_type=media_type,
            expires_in_s=checked.request.expires_in_seconds,
        )
    return json_response(_metadata(file), headers=ignored_header(checked.ignored))


async def list_files(request: web.Request) -> web.Response:
    """A page of files, or those of some ids that are there. Raises InvalidRequest."""
    query, files = read_query(request, FilesQuery), request.app[SERVER].store.files
    if query.ids is not None:
        found = await files.find(request[TENANT], query.ids)
        return json_response(file_page([_metadata(file) for file in found], None))
    below = NEWEST if query.below is None else query.below
    found, next_below = await files.page(request[TENANT], limit=query.limit, below=below)
    return json_response(file_page([_metadata(file) for file in found], next_below))


async def get_file(request: web.Request) -> web.Response:
    """One file's metadata. Raises NotFound."""
    return json_response(_metadata(await _find(request)))


async def delete_file(request: web.Request) -> web.Response:
    """Forget a file. Raises NotFound."""
    dialect_of(request)  # strict asks for a version here too
    id = request.match_info["id"]
    await request.app[SERVER].store.files.delete(request[TENANT], id)
    deleted: DeletedFile = {"id": id, "type": "file_deleted"}
    return json_response(deleted)


async def get_content(request: web.Request) -> web.Response:
    """Never the bytes: all files here were uploaded. Raises InvalidRequest, NotFound."""
    file = await _find(request)
    why = f"The file {file.id} was uploaded, and cannot be downloaded."
    raise InvalidRequest("", why, error_code="file_not_downloadable")


async def _find(request: web.Request) -> File:
    dialect_of(request)
    files = request.app[SERVER].store.files
    return await files.get(request[TENANT], request.match_info["id"])


def _metadata(file: File) -> FileMetadata:
    return {
        "id": file.id,
        "type": "file",
        "filename": file.filename,
        "mime_type": file.mime_type,
        "size_bytes": file.size_bytes,
        "created_at": rfc3339(file.created_at),
        "expires_at": rfc3339(file.expires_at),
        "downloadable": False,
    }
