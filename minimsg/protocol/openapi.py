"""The API as an OpenAPI 3.1 document, made from the types that requests are checked with.

    python -m minimsg.protocol.openapi > openapi.json

`document()` is what GET /openapi.json answers and what lies in the repository; a test
holds the two together. Knows the routes as data (`OPERATIONS`), and that the server has
no others; nothing of HTTP. Rules that look at several fields (`rules/`) cannot be said in
JSON Schema: a request that fits the document can still be refused with 400.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from minimsg.protocol.counting import TokenCount
from minimsg.protocol.envelope import ErrorEvent
from minimsg.protocol.events import Event
from minimsg.protocol.message import Message
from minimsg.protocol.models import ModelInfo, ModelsQuery
from minimsg.protocol.paging import Page
from minimsg.protocol.request import CountTokensRequest, MessagesRequest

Schema = dict[str, Any]  # what pydantic writes

ERRORS: Final = {
    400: "The request breaks a rule; the message names the JSON path.",
    401: "No API key, or a wrong one.",
    403: "This host or this web page may not ask.",
    404: "No such model.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not JSON by its headers.",
    429: "More than a minute's requests or tokens.",
    500: "The server's fault.",
    501: "The model cannot chat.",
    529: "Too many requests at once, or the server is shutting down.",
}
TEXT: Final = {"type": "string"}
HEADERS: Final = ("anthropic-version", "anthropic-beta")
REFUSALS: Final = (400, 401, 403, 429)
BODY_REFUSALS: Final = (*REFUSALS, 404, 408, 413, 415, 500, 501, 529)


@dataclass(frozen=True, slots=True)
class Operation:
    """One route and method. `errors`: what it can answer besides success."""

    id: str
    method: str
    path: str
    summary: str
    answers: Any
    body: Any = None
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
)


def document() -> Schema:
    """The whole document."""
    schemas, definitions = TypeAdapter.json_schemas(
        [(str(kind), mode, TypeAdapter(kind)) for kind, mode in _kinds()],
        ref_template="#/components/schemas/{model}",
    )
    written = {kind: schema for (kind, _), schema in schemas.items()}
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, written)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "minimsg",
            "summary": "The Messages API, served by a model of your own.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "version": version("minimsg"),
        },
        "security": [{}, {"key": []}, {"bearer": []}],  # no keys, no need for one
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _kinds() -> list[tuple[Any, Literal["validation", "serialization"]]]:
    """Every type of the document: bodies as they are taken, answers as they are given."""
    bodies = [o.body for o in OPERATIONS if o.body]
    answers = [o.answers for o in OPERATIONS] + [Event, ErrorEvent]
    return [(kind, "validation") for kind in bodies] + [(kind, "serialization") for kind in answers]


def _operation(operation: Operation, written: dict[str, Schema]) -> Schema:
    content = {"application/json": {"schema": written[str(operation.answers)]}}
    if operation.streams:
        content["text/event-stream"] = {"schema": written[str(operation.streams)]}
    error = {"application/json": {"schema": written[str(ErrorEvent)]}}
    described: Schema = {
        "summary": operation.summary,
        "operationId": operation.id,
        "parameters": _parameters(operation),
        "responses": {"200": {"description": "Done.", "content": content}}
        | {str(n): {"description": ERRORS[n], "content": error} for n in operation.errors},
    }
    if operation.body:
        body = {"application/json": {"schema": written[str(operation.body)]}}
        described["requestBody"] = {"required": True, "content": body}
    return described


def _parameters(operation: Operation) -> list[Schema]:
    in_query = operation.query.model_json_schema()["properties"] if operation.query else {}
    in_path = dict.fromkeys(re.findall(r"{(\w+)}", operation.path), TEXT)
    in_headers = dict.fromkeys(HEADERS if operation.body else (), TEXT)
    return [
        {"name": name, "in": place, "required": place == "path", "schema": schema}
        for place, found in (("path", in_path), ("query", in_query), ("header", in_headers))
        for name, schema in found.items()
    ]


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
