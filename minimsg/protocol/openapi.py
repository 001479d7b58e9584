"""The API as an OpenAPI 3.1 document, made from the types that requests are checked with.

    python -m minimsg.protocol.openapi > openapi.json

`document()` is what GET /openapi.json answers and what lies in the repository; a test
holds the two together. Knows the routes as data (`operations.py`); nothing of HTTP. Rules
that look at several fields (`rules/`) cannot be said in JSON Schema: a request that fits the
document can still be refused with 400.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from minimsg.protocol.envelope import ErrorEvent
from minimsg.protocol.events import Event
from minimsg.protocol.operations import ERRORS, JSON, OPERATIONS, Operation

Schema = dict[str, Any]  # what pydantic writes

TEXT: Final = {"type": "string"}
HEADERS: Final = ("anthropic-version", "anthropic-beta")


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
    answers = [o.answers for o in OPERATIONS if o.answers] + [Event, ErrorEvent]
    return [(kind, "validation") for kind in bodies] + [(kind, "serialization") for kind in answers]


def _operation(operation: Operation, written: dict[str, Schema]) -> Schema:
    error = {JSON: {"schema": written[str(ErrorEvent)]}}
    described: Schema = {
        "summary": operation.summary,
        "operationId": operation.id,
        "parameters": _parameters(operation),
        "responses": _success(operation, written)
        | {str(n): {"description": ERRORS[n], "content": error} for n in operation.errors},
    }
    if operation.body:
        body = {operation.body_type: {"schema": written[str(operation.body)]}}
        described["requestBody"] = {"required": True, "content": body}
    return described


def _success(operation: Operation, written: dict[str, Schema]) -> Schema:
    if operation.answers is None:
        return {}
    content = {operation.answer_type: {"schema": written[str(operation.answers)]}}
    if operation.streams:
        content["text/event-stream"] = {"schema": written[str(operation.streams)]}
    return {"200": {"description": "Done.", "content": content}}


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
