"""/v1/messages/batches: take a batch of requests, tell how far it is, give its results.

A batch is on disk before it is answered, with the dialect of the request that created it.
Ids are looked up by tenant before anything else is done with them. Next: `batch_body.py`
for a body of any size, `batch_runner.py` for who runs it, `store/batches.py` for the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from aiohttp import web

from minimsg.errors import NotFound
from minimsg.protocol.batches import (
    BatchBody,
    DeletedBatch,
    MessageBatch,
    RequestCounts,
    Status,
    result_line,
)
from minimsg.protocol.message import new_id
from minimsg.protocol.paging import Page, PageQuery
from minimsg.protocol.timestamps import rfc3339
from minimsg.server.auth import TENANT
from minimsg.server.batch_body import body_on_disk
from minimsg.server.batch_item import DIALECT
from minimsg.server.batch_runner import BATCHES
from minimsg.server.dialect import dialect_of
from minimsg.server.links import link
from minimsg.server.query import read_query
from minimsg.server.respond import ignored_header, json_response
from minimsg.server.state import SERVER
from minimsg.store import Batch, NewItem

LINES: Final = "application/x-jsonl"
WRITE_BYTES: Final = 64 * 1024  # of results that are sent at once


async def create_batch(request: web.Request) -> web.Response:
    """Keep the requests and begin with them. Raises RequestError."""
    server, dialect = request.app[SERVER], dialect_of(request)
    server.check_can_count()
    kept = DIALECT.dump_json(replace(dialect, is_in_batch=True))
    async with body_on_disk(request) as data:
        body = BatchBody(data, dialect)
        batch = await server.store.create_batch(
            request[TENANT], new_id("msgbatch_"), kept, _items(body)
        )
    request.app[BATCHES].wake()
    return json_response(_described(batch, request), headers=ignored_header(body.ignored))


async def list_batches(request: web.Request) -> web.Response:
    """A page of batches, newest first. Raises InvalidRequest."""
    query = read_query(request, PageQuery)
    found, has_more = await request.app[SERVER].store.list_batches(
        request[TENANT], limit=query.limit, after_id=query.after_id, before_id=query.before_id
    )
    page: Page[MessageBatch] = {
        "data": [_described(batch, request) for batch in found],
        "has_more": has_more,
        "first_id": found[0].id if found else None,
        "last_id": found[-1].id if found else None,
    }
    return json_response(page)


async def get_batch(request: web.Request) -> web.Response:
    """One batch as it is now. Raises NotFound."""
    return json_response(_described(await _find(request), request))


async def cancel_batch(request: web.Request) -> web.Response:
    """Begin none of its requests any more. Raises NotFound, InvalidRequest once it has ended."""
    dialect_of(request)  # strict asks for a version here too
    store, id = request.app[SERVER].store, request.match_info["id"]
    return json_response(_described(await store.cancel_batch(request[TENANT], id), request))


async def delete_batch(request: web.Request) -> web.Response:
    """Forget a batch. Raises NotFound, InvalidRequest unless it has ended."""
    dialect_of(request)
    id = request.match_info["id"]
    await request.app[SERVER].store.delete_batch(request[TENANT], id)
    deleted: DeletedBatch = {"id": id, "type": "message_batch_deleted"}
    return json_response(deleted)


async def get_results(request: web.Request) -> web.StreamResponse:
    """A line for each request, as they are read from the store. Raises NotFound."""
    batch = await _find(request)
    if batch.ended_at is None:
        raise NotFound("The message batch has no results yet: it has not ended.")
    if batch.archived_at is not None:
        raise NotFound("The results of the message batch are gone: they are kept for 29 days.")
    response = web.StreamResponse(headers={"content-type": LINES})
    await response.prepare(request)
    try:
        await _write_results(request, response, batch.id)
    except NotFound:  # deleted meanwhile; an end in order would say that these are all
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionAbortedError from None
    return response


async def _write_results(request: web.Request, response: web.StreamResponse, id: str) -> None:
    lines = bytearray()
    async for result in request.app[SERVER].store.results(id):
        lines += result_line(result.custom_id, result.kind, result.body)
        if len(lines) >= WRITE_BYTES:
            await response.write(bytes(lines))
            lines.clear()
    await response.write(bytes(lines))
    await response.write_eof()


async def _find(request: web.Request) -> Batch:
    dialect_of(request)
    return await request.app[SERVER].store.get_batch(request[TENANT], request.match_info["id"])


def _items(body: BatchBody) -> Iterator[NewItem]:
    for custom_id, params in body.requests():
        yield NewItem(custom_id, params)


def _described(batch: Batch, request: web.Request) -> MessageBatch:
    has_results = batch.ended_at is not None and batch.archived_at is None
    url = link(request, f"/v1/messages/batches/{batch.id}/results")
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": _status(batch),
        "request_counts": _counts(batch),
        "created_at": rfc3339(batch.created_at),
        "expires_at": rfc3339(batch.expires_at),
        "ended_at": rfc3339(batch.ended_at),
        "cancel_initiated_at": rfc3339(batch.cancel_initiated_at),
        "archived_at": rfc3339(batch.archived_at),
        "results_url": url if has_results else None,
    }


def _status(batch: Batch) -> Status:
    if batch.ended_at is not None:
        return "ended"
    return "in_progress" if batch.cancel_initiated_at is None else "canceling"


def _counts(batch: Batch) -> RequestCounts:
    has_ended = batch.ended_at is not None
    return {
        "processing": 0 if has_ended else batch.num_items,
        "succeeded": batch.succeeded if has_ended else 0,
        "errored": batch.errored if has_ended else 0,
        "canceled": batch.canceled if has_ended else 0,
        "expired": batch.expired if has_ended else 0,
    }
