"""Replies with tool calls, plain and streamed; the official SDK adds the stream up."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from pydantic import JsonValue

from minimsg.builtin import write_scripted

from .conftest import WRITERS, Start
from .running import Json, Running, ask
from .test_sdk import sdk

TOOLS: list[JsonValue] = [
    {"name": "now", "input_schema": {"type": "object", "properties": {}}},
    {
        "name": "add",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "note": {"type": "string"}},
        },
    },
]


@dataclass(frozen=True)
class Case:
    """What the model writes and what the message is."""

    tape: str
    content: list[Json]
    stop_reason: str = "tool_use"


def text(text: str) -> Json:
    return {"type": "text", "text": text}


def call(name: str, **input: JsonValue) -> Json:
    return {"type": "tool_use", "name": name, "input": input, "caller": {"type": "direct"}}


NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "note": "é <b>\\n"}}\n</tool_call>'
CASES = {
    "a pure call": Case(NOW, [call("now")]),
    "text, then a call": Case(
        f"Let me see.\n{ADD}", [text("Let me see."), call("add", a=1, note="é <b>\n")]
    ),
    "two calls back to back": Case(
        f"{ADD}\n{NOW}", [call("add", a=1, note="é <b>\n"), call("now")]
    ),
    "a call, then text": Case(f"{NOW}\nDone.", [call("now"), text("Done.")]),
    "a call without arguments": Case('<tool_call>{"name": "now"}</tool_call>', [call("now")]),
    "a call whose end tag is missing": Case(
        '<tool_call>{"name": "now", "arguments": {}}', [call("now")]
    ),
    "a call in single quotes": Case(
        "<tool_call>{'name': 'add', 'arguments': {'a': 1}}</tool_call>", [call("add", a=1)]
    ),
    "a call that breaks off": Case(
        '<tool_call>{"name": "add", "arguments": {"a": 1, "note": "rm -rf /tmp', [call("add", a=1)]
    ),
    "markup in text": Case(
        "Calls stand in <tool_call> and </tool_call>.",
        [text("Calls stand in <tool_call> and </tool_call>.")],
        "end_turn",
    ),
    "a call that never got a name": Case('<tool_call>{"na', [text('<tool_call>{"na')], "end_turn"),
    "a call of an unknown tool": Case(
        '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
        [text('<tool_call>{"name": "rm", "arguments": {}}</tool_call>')],
        "end_turn",
    ),
}
TITLES = list(CASES)
WRITERS["calls"] = lambda folder: write_scripted(folder, [case.tape for case in CASES.values()])


def asked(title: str, **fields: JsonValue) -> Json:
    """The body that the model answers with the tape of case `title`."""
    return ask(TITLES.index(title), **{"model": "calls", "tools": TOOLS, **fields})


@pytest.fixture
async def calls(start: Start) -> Running:
    return await start("calls")


@pytest.fixture
async def client(calls: Running) -> AsyncIterator[AsyncAnthropic]:
    async with sdk(calls) as made:
        yield made


def without_ids(message: Any) -> Json:
    """`message` less what is new each time, which must look as it does at the API."""
    whole: Json = {**message, "content": []}
    assert whole.pop("id")
    for block in message["content"]:
        if block["type"] == "tool_use":
            assert re.fullmatch(r"toolu_01[0-9A-Za-z]{22}", block.pop("id"))
    return {**whole, "content": message["content"]}


async def both_ways(client: AsyncAnthropic, request: Any) -> tuple[Json, Json]:
    """The plain answer, and what the SDK makes of the streamed one."""
    plain = await client.messages.create(**request)
    async with client.messages.stream(**request) as stream:
        streamed = await stream.get_final_message()
    return without_ids(plain.to_dict(mode="json")), without_ids(streamed.to_dict(mode="json"))


@pytest.mark.parametrize("title", TITLES)
async def test_what_the_sdk_adds_up_is_the_plain_answer(client: AsyncAnthropic, title: str) -> None:
    plain, streamed = await both_ways(client, asked(title))
    assert streamed == plain
    assert plain["content"] == CASES[title].content
    assert plain["stop_reason"] == CASES[title].stop_reason


def deltas(events: list[Json], index: int) -> list[Any]:
    """The deltas of a block."""
    of_block: list[Any] = [event for event in events if event.get("index") == index]
    return [event["delta"] for event in of_block if "delta" in event]


async def test_a_call_streams_a_parameter_at_a_time_after_an_empty_delta(calls: Running) -> None:
    events = await calls.stream(asked("text, then a call"))
    start: Any = next(event for event in events if event.get("index") == 1)
    assert start["type"] == "content_block_start"
    assert start["content_block"].pop("id").startswith("toolu_01")
    assert start["content_block"] == call("add")
    assert [delta["type"] for delta in deltas(events, 1)] == ["input_json_delta"] * 4
    pieces = [delta["partial_json"] for delta in deltas(events, 1)]
    assert pieces == ["", '{"a": 1', ', "note": "é <b>\\n"', "}"]


async def test_an_eager_tool_streams_its_input_as_it_comes(calls: Running) -> None:
    eager: JsonValue = [TOOLS[0], {**TOOLS[1], "eager_input_streaming": True}]  # type: ignore[dict-item]
    events = await calls.stream(asked("text, then a call", tools=eager))
    pieces = [delta["partial_json"] for delta in deltas(events, 1)]
    assert len(pieces) > 10
    assert json.loads("".join(pieces)) == {"a": 1, "note": "é <b>\n"}


async def test_a_call_that_max_tokens_cuts_is_closed_and_says_so(calls: Running) -> None:
    tape = CASES["text, then a call"].tape
    cut = tape.index('"note": "') + len('"note": "') + 3  # bytes, of which é has two
    request = asked("text, then a call", max_tokens=cut)
    plain, _ = await calls.post(request)
    events = await calls.stream(request)
    assert plain["stop_reason"] == "max_tokens"
    assert without_ids(plain)["content"] == [text("Let me see."), call("add", a=1)]
    pieces = [delta["partial_json"] for delta in deltas(events, 1)]
    assert "".join(pieces) == '{"a": 1, "note": "é '


async def test_wherever_max_tokens_cuts_both_modes_agree(client: AsyncAnthropic) -> None:
    for max_tokens in range(5, len(NOW), 7):
        plain, streamed = await both_ways(client, asked("a pure call", max_tokens=max_tokens))
        assert streamed == plain
        assert plain["stop_reason"] == "max_tokens"


async def test_without_the_tool_in_the_request_its_call_is_text(calls: Running) -> None:
    plain, _ = await calls.post(asked("a pure call", tools=[]))
    assert (plain["content"], plain["stop_reason"]) == ([text(NOW)], "end_turn")


async def test_tool_choice_none_makes_no_call_and_shows_no_tag(client: AsyncAnthropic) -> None:
    request = asked("text, then a call", tool_choice={"type": "none"})
    for message in await both_ways(client, request):
        shown = 'Let me see.\n{"name": "add", "arguments": {"a": 1, "note": "é <b>\\n"}}'
        assert (message["content"], message["stop_reason"]) == ([text(shown)], "end_turn")


async def test_no_half_tag_follows_a_call_that_max_tokens_cut(client: AsyncAnthropic) -> None:
    closing = len("\n</tool_call>")
    for length in range(len(NOW) - closing, len(NOW)):
        for message in await both_ways(client, asked("a pure call", max_tokens=length)):
            assert (message["content"], message["stop_reason"]) == ([call("now")], "max_tokens")


async def test_a_stop_sequence_is_not_looked_for_in_arguments(calls: Running) -> None:
    request = asked("text, then a call", stop_sequences=["note", "tool_call"])
    plain, _ = await calls.post(request)
    assert plain["stop_reason"] == "tool_use"
    request = asked("a call, then text", stop_sequences=["one"])
    plain, _ = await calls.post(request)
    assert (plain["stop_reason"], plain["stop_sequence"]) == ("stop_sequence", "one")
    assert without_ids(plain)["content"] == [call("now"), text("D")]
