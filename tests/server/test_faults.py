"""What others got wrong in replies, set right: plain and streamed, in pieces of every size.

The scripted model says each text in tokens of so many characters, so that tags and stop
sequences fall across tokens in every way; the official SDK adds the streams up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import JsonValue

from minimsg.builtin import THINKING_CHATML, VOCAB_SIZE, write_scripted
from minimsg.protocol.message import STOP_REASONS, StopReason
from minimsg.text.token_bytes import BYTE_ALPHABET

from .conftest import WRITERS, Start
from .running import Json, Running, ask
from .test_sdk import sdk
from .test_tool_replies import TOOLS, both_ways, call, text

WHOLE = 1_000
SIZES = (1, 2, 3, 4, 5, 7, WHOLE)
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
NOTE = '<tool_call>{"name": "add", "arguments": {"note": "a STOP b"}}</tool_call>'
ENABLED: Json = {"type": "enabled", "budget_tokens": 1024}


@dataclass(frozen=True)
class Case:
    """What the model writes, what is asked besides, and what the message is."""

    tape: str
    content: list[Json]
    stop_reason: str = "end_turn"
    stop_sequence: str | None = None
    fields: Json = field(default_factory=dict)


def stopping(*sequences: str, **fields: JsonValue) -> Json:
    return {"stop_sequences": list(sequences), **fields}


def thinking(thought: str) -> Json:
    return {"type": "thinking", "thinking": thought}


WITH_TOOLS: Json = {"tools": TOOLS}
THINKING: Json = {**WITH_TOOLS, "thinking": ENABLED}
CASES = {
    "a stop sequence ends the text before it": Case(
        "one two STOP three", [text("one two ")], "stop_sequence", "STOP", stopping("STOP")
    ),
    "a stop sequence over several tokens shows none of it": Case(
        "ab</end>x", [text("ab")], "stop_sequence", "</end>", stopping("</end>")
    ),
    "half a stop sequence at the end is text": Case(
        "hello </e", [text("hello </e")], fields=stopping("</end>")
    ),
    "the stop sequence that is complete first wins": Case(
        "a END b STOP", [text("a ")], "stop_sequence", "END", stopping("STOP", "END")
    ),
    "of two that end at once the longer wins": Case(
        "a STOP b", [text("a ")], "stop_sequence", "STOP", stopping("OP", "STOP")
    ),
    "a stop sequence in what might become a tag": Case(
        "a <tool_x b", [text("a ")], "stop_sequence", "<tool", stopping("<tool", **WITH_TOOLS)
    ),
    "a stop sequence that ends in white space with tools": Case(
        "one\n\ntwo", [text("on")], "stop_sequence", "e\n\n", stopping("e\n\n", **WITH_TOOLS)
    ),
    "no stop sequence in thinking or arguments": Case(
        f"<think>a STOP</think>b{NOTE}",
        [thinking("a STOP"), text("b"), call("add", note="a STOP b")],
        "tool_use",
        fields=stopping("STOP", **THINKING),
    ),
    "a stop sequence after a call": Case(
        f"{NOW}\nc STOP", [call("now"), text("c ")], "stop_sequence", "STOP",
        stopping("STOP", **WITH_TOOLS),
    ),
    "thinking, text and a call are three blocks": Case(
        f"<think>x</think>hello{NOW}",
        [thinking("x"), text("hello"), call("now")],
        "tool_use",
        fields=THINKING,
    ),
    "several parts of thinking are blocks in their places": Case(
        f"<think>a</think>b<think>c</think>{NOW}<think>d</think>",
        [thinking("a"), text("b"), thinking("c"), call("now"), thinking("d")],
        "tool_use",
        fields=THINKING,
    ),
    "thinking that nobody asked for is not shown": Case(
        f"<think>x</think>{NOW}", [call("now")], "tool_use", fields=WITH_TOOLS
    ),
    "a call alone is the first block": Case(NOW, [call("now")], "tool_use", fields=WITH_TOOLS),
    "two calls are two blocks": Case(
        f"{NOW}\n{NOTE}", [call("now"), call("add", note="a STOP b")], "tool_use",
        fields=WITH_TOOLS,
    ),
    "a call whose end is missing": Case(
        '<tool_call>{"name": "now", "arguments": {}}', [call("now")], "tool_use", fields=WITH_TOOLS
    ),
    "a call in a fence inside its tag": Case(
        f"<tool_call>\n```json\n{NOTE[11:-12]}\n```\n</tool_call>", [call("add", note="a STOP b")],
        "tool_use", fields=WITH_TOOLS,
    ),
    "a call of an unknown tool is text": Case(
        NOW.replace("now", "rm"), [text(NOW.replace("now", "rm"))], fields=WITH_TOOLS
    ),
    "half a tag at the end is text": Case("a <tool_ca", [text("a <tool_ca")], fields=WITH_TOOLS),
}  # fmt: skip
TITLES = list(CASES)


def pieces(tape: str, size: int) -> list[str]:
    return [tape[start : start + size] for start in range(0, len(tape), size)]


def write_in_pieces(folder: Path, size: int) -> None:
    """A model that says the tapes of CASES in tokens of `size` characters."""
    write_scripted(folder, ["x"], template=THINKING_CHATML)
    tapes = [pieces(case.tape, size) for case in CASES.values()]
    longer = {piece for tape in tapes for piece in tape if len(piece) > 1}
    ids = {piece: VOCAB_SIZE + n for n, piece in enumerate(sorted(longer))}
    ids |= {chr(byte): byte for byte in range(128)}
    alphabet = {byte: character for character, byte in BYTE_ALPHABET.items()}
    vocab = {"".join(alphabet[b] for b in piece.encode()): id for piece, id in ids.items()}
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] |= vocab
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((folder / "config.json").read_text())
    config["tapes"] = [[ids[piece] for piece in tape] for tape in tapes]
    config["vocab_size"] = VOCAB_SIZE + len(longer)
    (folder / "config.json").write_text(json.dumps(config))


def name_of(size: int) -> str:
    return f"pieces of {size}"


WRITERS |= {
    name_of(size): lambda folder, size=size: write_in_pieces(folder, size)  # type: ignore[misc]
    for size in SIZES
}


def asked(title: str, size: int, **fields: Any) -> Json:
    body = {"model": name_of(size), "max_tokens": 2_000, **CASES[title].fields, **fields}
    return ask(TITLES.index(title), **body)


def unsigned(content: Any) -> list[Json]:
    """`content` without the signatures, which every block of thinking has."""
    return [
        {"type": "thinking", "thinking": block["thinking"]}
        if block["type"] == "thinking" and block["signature"]
        else block
        for block in content
    ]


@pytest.mark.parametrize("size", SIZES)
async def test_a_reply_is_what_it_should_be_in_both_modes(start: Start, size: int) -> None:
    async with sdk(await start(name_of(size))) as client:
        for title, case in CASES.items():
            plain, streamed = await both_ways(client, asked(title, size))
            assert unsigned(plain["content"]) == case.content, title
            assert unsigned(streamed["content"]) == case.content, title
            for message in (plain, streamed):
                assert message["stop_reason"] == case.stop_reason, title
                assert message["stop_sequence"] == case.stop_sequence, title
            assert streamed["usage"] == plain["usage"], title


def blocks_opened(events: list[Json]) -> Iterator[Any]:
    return (event for event in events if event["type"] == "content_block_start")


async def test_blocks_are_numbered_from_zero_and_no_text_block_is_empty(start: Start) -> None:
    running = await start(name_of(3))
    for title, case in CASES.items():
        events = await running.stream(asked(title, 3))
        assert [event["index"] for event in blocks_opened(events)] == [*range(len(case.content))]
        starts = [event for event in events if event["type"] == "message_start"]
        assert starts == events[:1], title


async def test_a_stop_sequence_that_ends_in_white_space_costs_no_token_after_it(
    start: Start,
) -> None:
    running = await start(name_of(1))
    message, _ = await running.post(asked("a stop sequence that ends in white space with tools", 1))
    usage: Any = message["usage"]
    assert usage["output_tokens"] == len("one\n\n")


async def test_a_turn_of_the_assistant_is_continued(scripted: Running) -> None:
    turns: list[JsonValue] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Hello, I"},
    ]
    message, _ = await scripted.post({**ask(0), "max_tokens": 8, "messages": turns})
    content: Any = message["content"]
    assert [block["text"] for block in content] == [" am the "]


async def test_a_system_turn_in_the_middle_is_answered(scripted: Running) -> None:
    turns: list[JsonValue] = [
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
    ]
    message, _ = await scripted.post({**ask(0), "system": "A", "messages": turns})
    assert message["stop_reason"] == "end_turn"


REASONS: dict[str, tuple[str, str, Json]] = {
    "end_turn": (name_of(1), "half a tag at the end is text", {}),
    "max_tokens": (name_of(1), "a call alone is the first block", {"max_tokens": 5}),
    "stop_sequence": (name_of(1), "a stop sequence ends the text before it", {}),
    "tool_use": (name_of(1), "a call alone is the first block", {}),
}


@pytest.mark.parametrize("reason", REASONS)
async def test_each_reason_to_stop_is_given_in_both_modes(start: Start, reason: str) -> None:
    model, title, fields = REASONS[reason]
    async with sdk(await start(model)) as client:
        for message in await both_ways(client, asked(title, 1, **fields)):
            assert message["stop_reason"] == reason


async def test_a_full_window_is_a_reason_in_both_modes(start: Start) -> None:
    request: Any = {"model": "tiny", "max_tokens": 10_000, "extra_body": {"seed": 1}}
    request["messages"] = [{"role": "user", "content": "x" * 1_990}]
    async with sdk(await start("tiny")) as client:
        for message in await both_ways(client, request):
            assert message["stop_reason"] == "model_context_window_exceeded"


def test_no_reason_is_given_that_nothing_here_can_have() -> None:
    given = {*STOP_REASONS.values(), "stop_sequence", "tool_use"}
    assert given == {*REASONS, "model_context_window_exceeded"}
    assert given <= {*get_args(StopReason)}
