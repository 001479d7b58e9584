"""The routes as data: what each takes, answers and can fail with. `openapi.py` writes them down.

Routes that are about the server, not about messages (`/health`, `/metrics`), are not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from minimsg.protocol.batches import BatchResult, CreateBatch, DeletedBatch, MessageBatch
from minimsg.protocol.counting import TokenCount
from minimsg.protocol.events import Event
from minimsg.protocol.files import DeletedFile, FileMetadata, FilePage, FilesQuery, UploadForm
from minimsg.protocol.message import Message
from minimsg.protocol.models import ModelInfo, ModelsQuery
from minimsg.protocol.paging import Page, PageQuery
from minimsg.protocol.request import CountTokensRequest, MessagesRequest
from minimsg.trace import Trace, TracePage

JSON, FORM, LINES = "application/json", "multipart/form-data", "application/x-jsonl"

ERRORS: Final = {
    400: "The request breaks a rule; the message names the JSON path.",
    401: "No API key, or a wrong one.",
    403: "This host or this web page may not ask.",
    404: "No such model, file, batch or record.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not what the route takes, by its headers.",
    429: "More than a minute's requests or tokens.",
    500: "The server's fault.",
    501: "The model cannot chat.",
    507: "The server's disk is full.",
    529: "Too many requests at once, or the server is shutting down.",
}
REFUSALS: Final = (400, 401, 403, 429)
OBJECT_REFUSALS: Final = (*REFUSALS, 404)
BODY_REFUSALS: Final = (*REFUSALS, 404, 408, 413, 415, 500, 501, 529)


@dataclass(frozen=True, slots=True)
class Operation:
    """One route and method. `errors`: what it can answer besides success."""

    id: str
    method: str
    path: str
    summary: str
    answers: Any = None  # None: never a success
    answer_type: str = JSON  # of lines, `answers` is one
    body: Any = None
    body_type: str = JSON
    query: Any = None
    streams: Any = None
    errors: tuple[int, ...] = REFUSALS


OPERATIONS: Final = (
    Operation(
        "create_message",
        "post",
        "/v1/messages",
        "Answer a conversation, as a whole or as a stream of events.",
        answers=Message,
        body=MessagesRequest,
        streams=Event,
        errors=BODY_REFUSALS,
    ),
    Operation(
        "count_tokens",
        "post",
        "/v1/messages/count_tokens",
        "Tell how long the prompt of a request is.",
        answers=TokenCount,
        body=CountTokensRequest,
        errors=BODY_REFUSALS,
    ),
    Operation(
        "list_models",
        "get",
        "/v1/models",
        "List the models.",
        answers=Page[ModelInfo],
        query=ModelsQuery,
    ),
    Operation(
        "get_model",
        "get",
        "/v1/models/{model_id}",
        "Describe a model, found by its id or an alias.",
        answers=ModelInfo,
        errors=(401, 403, 404),
    ),
    Operation(
        "upload_file",
        "post",
        "/v1/files",
        "Keep a file, to be named in requests.",
        answers=FileMetadata,
        body=UploadForm,
        body_type=FORM,
        errors=(*REFUSALS, 408, 413, 415, 500, 507),
    ),
    Operation(
        "list_files",
        "get",
        "/v1/files",
        "List the files.",
        answers=FilePage,
        query=FilesQuery,
    ),
    Operation(
        "get_file",
        "get",
        "/v1/files/{file_id}",
        "Describe a file.",
        answers=FileMetadata,
        errors=OBJECT_REFUSALS,
    ),
    Operation(
        "delete_file",
        "delete",
        "/v1/files/{file_id}",
        "Forget a file.",
        answers=DeletedFile,
        errors=(*OBJECT_REFUSALS, 507),
    ),
    Operation(
        "get_file_content",
        "get",
        "/v1/files/{file_id}/content",
        "Refuse to give back a file that was uploaded.",
        errors=OBJECT_REFUSALS,
    ),
    Operation(
        "create_batch",
        "post",
        "/v1/messages/batches",
        "Take up to 100,000 requests, to be answered within a day.",
        answers=MessageBatch,
        body=CreateBatch,
        errors=(*REFUSALS, 408, 413, 415, 500, 501, 507, 529),
    ),
    Operation(
        "list_batches",
        "get",
        "/v1/messages/batches",
        "List the batches.",
        answers=Page[MessageBatch],
        query=PageQuery,
    ),
    Operation(
        "get_batch",
        "get",
        "/v1/messages/batches/{message_batch_id}",
        "Tell how far a batch is.",
        answers=MessageBatch,
        errors=OBJECT_REFUSALS,
    ),
    Operation(
        "cancel_batch",
        "post",
        "/v1/messages/batches/{message_batch_id}/cancel",
        "Begin none of a batch's requests any more.",
        answers=MessageBatch,
        errors=(*OBJECT_REFUSALS, 507),
    ),
    Operation(
        "delete_batch",
        "delete",
        "/v1/messages/batches/{message_batch_id}",
        "Forget a batch that has ended.",
        answers=DeletedBatch,
        errors=(*OBJECT_REFUSALS, 507),
    ),
    Operation(
        "get_batch_results",
        "get",
        "/v1/messages/batches/{message_batch_id}/results",
        "Give the results of a batch that has ended, one a line.",
        answers=BatchResult,
        answer_type=LINES,
        errors=OBJECT_REFUSALS,
    ),
    Operation(
        "list_traces",
        "get",
        "/minimsg/traces",
        "List the requests that were traced.",
        answers=TracePage,
        errors=(401, 403),
    ),
    Operation(
        "get_trace",
        "get",
        "/minimsg/traces/{request_id}",
        "Give the whole record of a request: prompt, steps, tokens, events.",
        answers=Trace,
        errors=(401, 403, 404, 529),
    ),
)
