"""Replies held to a form, by a model that would say anything: random weights, official SDK."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from anthropic import AsyncAnthropic, BadRequestError
from anthropic.types import Message

from minimsg.config import ServerConfig

from .conftest import Start
from .running import Running

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
NOW: dict[str, Any] = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "sunny": {"type": "boolean"}},
    "required": ["city", "sunny"],
    "additionalProperties": False,
}
ASK: Any = [{"role": "user", "content": "Say hi."}]


async def create(running: Running, **fields: Any) -> Message:
    async with AsyncAnthropic(base_url=running.url, api_key="local", max_retries=0) as client:
        given = {"max_tokens": 400, "messages": ASK, **fields}
        message: Message = await client.messages.create(model="tiny", **given)
        return message


@pytest.mark.parametrize("seed", range(3))
async def test_a_forced_tool_is_called_once_with_valid_input(tiny: Running, seed: int) -> None:
    choice = {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}
    message = await create(
        tiny, tools=[WEATHER, NOW], tool_choice=choice, extra_body={"seed": seed}
    )
    [call] = message.content
    assert call.type == "tool_use"
    assert call.name == "get_weather"
    assert message.stop_reason == "tool_use"
    jsonschema.validate(call.input, WEATHER["input_schema"])


async def test_any_tool_is_called_before_anything_else_is_said(tiny: Running) -> None:
    message = await create(tiny, tools=[WEATHER, NOW], tool_choice={"type": "any"})
    assert {block.type for block in message.content} == {"tool_use"}


@pytest.mark.parametrize("kind", ["auto", "any", "tool", "none"])
@pytest.mark.parametrize("is_parallel", [False, True], ids=["one", "parallel"])
async def test_every_choice_of_tools_is_kept(tiny: Running, kind: str, is_parallel: bool) -> None:
    choice: dict[str, Any] = {"type": kind}
    if kind == "tool":
        choice["name"] = "get_weather"
    if kind != "none":
        choice["disable_parallel_tool_use"] = not is_parallel
    message = await create(tiny, tools=[WEATHER, NOW], tool_choice=choice)
    calls = [block for block in message.content if block.type == "tool_use"]
    if kind in ("any", "tool"):
        assert calls
        assert len(calls) == len(message.content)
    if not is_parallel or kind == "none":
        assert len(calls) <= (kind != "none")
    if kind == "tool":
        assert {call.name for call in calls} == {"get_weather"}
    is_cut = message.stop_reason == "max_tokens"
    schemas = {tool["name"]: tool["input_schema"] for tool in (WEATHER, NOW)}
    for call in calls[:-1] if is_cut else calls:
        jsonschema.validate(call.input, schemas[call.name])


@pytest.mark.parametrize("max_tokens", [1, 12, 30, 50, 75])
async def test_a_forced_reply_that_is_cut_shows_no_markup(tiny: Running, max_tokens: int) -> None:
    choice = {"type": "tool", "name": "get_weather"}
    message = await create(tiny, tools=[WEATHER], tool_choice=choice, max_tokens=max_tokens)
    assert message.stop_reason == "max_tokens"
    assert all(block.type == "tool_use" for block in message.content)


@pytest.mark.parametrize("seed", range(3))
async def test_a_format_makes_one_json_value(tiny: Running, seed: int) -> None:
    config = {"format": {"type": "json_schema", "schema": ANSWER}}
    message = await create(tiny, output_config=config, extra_body={"seed": seed})
    [block] = message.content
    assert block.type == "text"
    assert message.stop_reason == "end_turn"
    jsonschema.validate(json.loads(block.text), ANSWER)


async def test_the_stream_of_a_forced_call_adds_up_to_a_valid_one(tiny: Running) -> None:
    async with (
        AsyncAnthropic(base_url=tiny.url, api_key="local") as client,
        client.messages.stream(
            model="tiny",
            max_tokens=400,
            messages=ASK,
            tools=[WEATHER],  # type: ignore[list-item]
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        ) as stream,
    ):
        [call] = (await stream.get_final_message()).content
    assert call.type == "tool_use"
    jsonschema.validate(call.input, WEATHER["input_schema"])


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (
            {"tools": [{"name": "f", "strict": True, "input_schema": {"type": "object"}}]},
            "tools.0.custom.input_schema.properties.x",
        ),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
    ],
)
async def test_what_cannot_be_enforced_is_refused_at_its_place(
    tiny: Running, fields: dict[str, Any], path: str
) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "array", "uniqueItems": True}}}
    if "tools" in fields:
        fields["tools"][0]["input_schema"] = schema
    else:
        fields["output_config"]["format"]["schema"] = schema
    with pytest.raises(BadRequestError, match=f"{path}.*uniqueItems"):
        await create(tiny, **fields)


async def test_an_ordinary_tool_may_have_a_schema_that_cannot_be_enforced(start: Start) -> None:
    """A look-ahead is more than the grammar engine takes; the tool is still told of."""
    schema = {"type": "object", "properties": {"q": {"type": "string", "pattern": "^(?!x).*$"}}}
    running = await start("tiny")
    message = await create(running, tools=[{"name": "f", "input_schema": schema}], max_tokens=8)
    assert message.stop_reason in ("max_tokens", "end_turn")


async def test_the_strict_profile_refuses_what_the_hosted_api_would_not_enforce(
    start: Start,
) -> None:
    running = await start("tiny", config=ServerConfig(profile="strict"))
    tool = {"name": "f", "strict": True, "input_schema": {"type": "object"}}
    with pytest.raises(BadRequestError, match=r"tools\.0\.custom: For 'object' type, 'additional"):
        await create(running, tools=[tool], max_tokens=8)


async def test_a_choice_among_no_tools_is_refused(start: Start) -> None:
    running = await start("tiny", config=ServerConfig(drop_server_tools=True))
    search = {"type": "web_search_20250305", "name": "web_search"}
    later = {**NOW, "defer_loading": True}
    with pytest.raises(BadRequestError, match="tool_choice may only be specified while providing"):
        await create(running, tools=[search, later], tool_choice={"type": "any"}, max_tokens=8)
