"""The OpenAPI document: valid, what the types say, and the one that is checked in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from anthropic.types import MessageCreateParams
from pydantic import JsonValue

from minimsg.protocol.openapi import document
from minimsg.protocol.request import MessagesRequest

CHECKED_IN = Path(__file__).parents[2] / "openapi.json"
HI: JsonValue = {"role": "user", "content": "hi"}

CALL: JsonValue = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
}
RESULT: JsonValue = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}],
}


def body(**fields: JsonValue) -> dict[str, JsonValue]:
    return {"model": "m", "max_tokens": 8, "messages": [HI], **fields}


def test_the_checked_in_document_is_the_one_that_is_served() -> None:
    assert json.loads(CHECKED_IN.read_text("utf-8")) == document(), (
        "run: python -m minimsg.protocol.openapi > openapi.json"
    )


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(document())
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= document()["components"]["schemas"].keys()
    assert len(names) > 80


def check(data: JsonValue) -> None:
    """Raise ValidationError unless the document takes `data` as a Messages request."""
    whole: dict[str, Any] = {
        "$ref": "#/components/schemas/MessagesRequest",
        "components": document()["components"],
    }
    jsonschema.Draft202012Validator(whole).validate(data)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"system": "s"},
        {"system": None, "stop_sequences": None, "tools": None},
        {"system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]},
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}]},
        {"tools": [{"type": "bash_20250124", "name": "bash"}]},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2_000},
        {"messages": [HI, CALL, RESULT]},
    ],
)
def test_the_document_and_the_types_take_the_same(fields: dict[str, JsonValue]) -> None:
    MessagesRequest.parse(body(**fields))
    check(body(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": -1},
        {"messages": [], "system": 1},
        {"tools": [{"name": "f"}]},
        {"thinking": {"type": "enabled", "budget_tokens": 1}},
        {"temperature": 3},
        {"unknown": 1},
    ],
)
def test_the_document_refuses_what_the_types_refuse(fields: dict[str, JsonValue]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(body(**fields))


def test_every_field_that_the_sdk_sends_is_described() -> None:
    described = document()["components"]["schemas"]["MessagesRequest"]["properties"]
    sent = MessageCreateParams.__args__[0].__annotations__  # type: ignore[attr-defined]
    assert sent.keys() - {"user_profile_id", "workspace_id"} <= described.keys()
