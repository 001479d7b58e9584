"""The record of a request that was traced: who may read it, and that it says what happened."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from minimsg.trace import Trace, from_json, to_json

from .conftest import SERVING, Start
from .running import Json, Running

EXAMPLE = Path(__file__).parent / "example_trace.json"
BODY: Json = {
    "model": "tiny",
    "max_tokens": 24,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "héllo"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": [{"type": "text", "text": "call it"}]},
    ],
    "tools": [
        {
            "name": "now",
            "description": "The time in a zone.",
            "input_schema": {
                "type": "object",
                "properties": {"zone": {"type": "string", "enum": ["utc", "cet"]}},
                "required": ["zone"],
                "additionalProperties": False,
            },
        }
    ],
    "tool_choice": {"type": "tool", "name": "now"},
}


def test_the_example_is_read_and_written_as_it_is() -> None:
    data = EXAMPLE.read_bytes()
    assert json.loads(to_json(from_json(data))) == json.loads(data)


async def traces(running: Running) -> list[Json]:
    """The list of records, the latest first."""
    async with running.session.get(running.url + "/minimsg/traces") as response:
        lines: list[Json] = (await response.json())["data"]
        return lines


async def read(running: Running, id: JsonValue) -> Trace:
    """The record of one request."""
    async with running.session.get(f"{running.url}/minimsg/traces/{id}") as response:
        assert response.status == 200, await response.text()
        return from_json(await response.read())


async def test_the_record_of_a_stream_has_its_events_and_its_usage(start: Start) -> None:
    running = await start("tiny", config=replace(SERVING, trace=3))
    events = await running.stream(BODY)
    (line,) = await traces(running)
    trace = await read(running, line["id"])
    assert [each.event for each in trace.events] == events
    assert trace.usage is not None
    assert len(trace.tokens) == line["num_tokens"] == trace.usage["output_tokens"]
