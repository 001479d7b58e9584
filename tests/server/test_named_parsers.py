"""A parser that the user names is the one that reads and holds, whatever the template shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minimsg.builtin import CHATML, VOCAB_SIZE, write_scripted
from minimsg.config import ParserConfig
from minimsg.limits import LIMITS

from .conftest import WRITERS, Start
from .running import Json, Running, ask

NOW: Json = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
ENABLED: Json = {"type": "enabled", "budget_tokens": 1024}
TAPES = {
    "bare": '{"name": "now", "arguments": {}}',
    "tagged": '<tool_call>{"name": "now", "arguments": {}}</tool_call>',
    "xml": "<tool_call>\n<function=now>\n</function>\n</tool_call>",
    "end of thinking": "plan</think>Hello",
    "other tags": "<thinking>plan</thinking>Hello",
    "think": "<think>plan</think>Hello",
}
TITLES = list(TAPES)
WRITERS["unseen"] = lambda folder: write_scripted(folder, list(TAPES.values()), template=CHATML)


def write_python_tags(folder: Path) -> None:
    """A model with Llama's tag for its only special token besides those of turns."""
    write_scripted(folder, ["x"], template=CHATML)
    tag, rest = VOCAB_SIZE, b'{"name": "now", "parameters": {}}'
    edit(folder / "config.json", vocab_size=tag + 1, tapes=[[*b"I look.\n", tag, *rest]])
    token = {"id": tag, "content": "<|python_tag|>", "special": True, "normalized": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    edit(folder / "tokenizer.json", added_tokens=[*added, {**token, **flags}])


def edit(file: Path, **fields: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


WRITERS["python tags"] = write_python_tags


def asked(title: str, **fields: Any) -> Json:
    return ask(TITLES.index(title), **{"model": "unseen", **fields})


async def serving(start: Start, **parsers: str) -> Running:
    return await start("unseen", parsers=ParserConfig(**parsers))


def shown(message: Json) -> list[tuple[str, str]]:
    """Each block's type and what it says."""
    content: Any = message["content"]
    keys = {"text": "text", "thinking": "thinking", "tool_use": "name"}
    return [(block["type"], block[keys[block["type"]]]) for block in content]


@pytest.mark.parametrize(
    ("parser", "is_read"),
    [
        ("auto", {"tagged", "bare"}),
        ("hermes", {"tagged", "bare"}),
        ("json", {"tagged", "bare"}),
        ("llama_json", {"bare"}),
        ("qwen_xml", {"xml", "tagged"}),
        ("none", set()),
    ],
)
async def test_calls_are_read_by_the_parser_that_is_named(
    start: Start, parser: str, is_read: set[str]
) -> None:
    running = await serving(start, tool_call_parser=parser)
    for title in ("bare", "tagged", "xml"):
        message, _ = await running.post(asked(title, tools=[NOW]))
        call, text = [("tool_use", "now")], [("text", TAPES[title])]
        assert shown(message) == (call if title in is_read else text)
        assert message["stop_reason"] == ("tool_use" if title in is_read else "end_turn")


@pytest.mark.parametrize("parser", ["hermes", "llama_json"])
async def test_a_tag_that_is_a_special_token_is_seen_by_its_parser_and_by_nobody_else(
    start: Start, parser: str
) -> None:
    running = await start("python tags", parsers=ParserConfig(tool_call_parser=parser))
    fields: Any = {"model": "python tags", "tools": [NOW]}
    message, _ = await running.post(ask(0, **fields))
    before, call = "I look.", '{"name": "now", "parameters": {}}'
    is_read = parser == "llama_json"
    text = ("text", before if is_read else f"{before}\n{call}")
    assert shown(message) == [text, *[("tool_use", "now")] * is_read]


@pytest.mark.parametrize("parser", ["hermes", "json", "llama_json", "qwen_xml"])
async def test_forced_calls_are_written_for_the_parser_that_is_named(
    start: Start, parser: str
) -> None:
    running = await start("tiny", parsers=ParserConfig(tool_call_parser=parser))
    fields: Any = {"model": "tiny", "tools": [NOW], "tool_choice": {"type": "any"}, "seed": 1}
    message, _ = await running.post(ask(0, **fields))
    assert shown(message)[0] == ("tool_use", "now")


async def test_a_model_whose_calls_are_not_read_cannot_be_forced_to_call(start: Start) -> None:
    running = await serving(start, tool_call_parser="none")
    request = asked("bare", tools=[NOW], tool_choice={"type": "any"})
    error, _ = await running.post(request, status=400)
    assert "tool_choice" in str(error["error"])


@pytest.mark.parametrize(
    ("parser", "title", "expected"),
    [
        ("auto", "think", [("text", TAPES["think"])]),
        ("none", "think", [("text", TAPES["think"])]),
        ("think", "think", [("thinking", "plan"), ("text", "Hello")]),
        ("qwen3", "think", [("thinking", "plan"), ("text", "Hello")]),
        ("deepseek_r1", "think", [("thinking", "plan"), ("text", "Hello")]),
        ("deepseek_r1", "end of thinking", [("thinking", "plan"), ("text", "Hello")]),
        ("think", "other tags", [("text", TAPES["other tags"])]),
        ("thinking", "other tags", [("thinking", "plan"), ("text", "Hello")]),
    ],
)
async def test_thinking_is_read_between_the_tags_that_are_named(
    start: Start, parser: str, title: str, expected: list[tuple[str, str]]
) -> None:
    running = await serving(start, reasoning_parser=parser)
    message, _ = await running.post(asked(title, thinking=ENABLED))
    assert shown(message) == expected


async def test_whether_the_model_can_think_is_what_the_user_says(start: Start) -> None:
    for parser, can in (("auto", False), ("think", True)):
        running = await serving(start, reasoning_parser=parser)
        async with running.session.get(f"{running.url}/v1/models/unseen") as response:
            capabilities = (await response.json())["capabilities"]
        assert capabilities["thinking"]["supported"] is can


async def test_a_big_body_is_read_by_the_same_parsers(start: Start) -> None:
    running = await serving(start, reasoning_parser="deepseek_r1")
    metadata = {"padding": "x" * LIMITS.inline_body_bytes}
    message, _ = await running.post(asked("end of thinking", thinking=ENABLED, other=metadata))
    assert shown(message) == [("thinking", "plan"), ("text", "Hello")]
