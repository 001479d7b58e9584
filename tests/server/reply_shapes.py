"""Every shape that a reply can have: what is asked, what the scripted model writes, what is shown.

One table for the clients that add streams up: the Python SDK (`test_rebuilt_streams.py`)
and the TypeScript SDK (`tests/clients/test_typescript_sdk.py`). The blocks are written by
hand. Knows nothing of servers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minimsg.builtin import write_scripted

from .running import Json, ask

MODEL = "shapes"
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 12, "note": "é <b>"}}\n</tool_call>'
EMOJI = "aé\U0001f469\u200d\U0001f680\U0001f1eb\U0001f1f7!"  # up to 11 tokens a character
NOW_TOOL: Json = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
ADD_TOOL: Json = {
    "name": "add",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["a", "note"],
        "additionalProperties": False,
    },
}
ANSWER: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "sunny": {"type": "boolean"}},
    "required": ["city", "sunny"],
    "additionalProperties": False,
}
TOOLS: Json = {"tools": [NOW_TOOL, ADD_TOOL]}
THINKS: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


@dataclass(frozen=True)
class Shape:
    """A tape, what is asked beside it, and the message that it must become."""

    tape: str
    content: list[Json]
    stop_reason: str = "end_turn"
    asked: Json = field(default_factory=dict)
    prefix: str = ""  # the assistant's turn that the reply goes on with


def text(text: str) -> Json:
    return {"type": "text", "text": text}


def thinking(thinking: str) -> Json:
    return {"type": "thinking", "thinking": thinking}


def call(name: str, input: Json) -> Json:
    return {"type": "tool_use", "name": name, "input": input}


ADDED = call("add", {"a": 12, "note": "é <b>"})
CALLED = call("now", {})
SHAPES = {
    "text": Shape("Hello there.", [text("Hello there.")]),
    "nothing": Shape("<|im_end|>", []),
    "characters of many tokens": Shape(EMOJI, [text(EMOJI)]),
    "thinking, then text": Shape(
        "<think>plan é\U0001f680</think>Hello",
        [thinking("plan é\U0001f680"), text("Hello")],
        asked=THINKS,
    ),
    "several parts of thinking": Shape(
        "<think>a</think>one<think>b</think>two",
        [thinking("a"), text("one"), thinking("b"), text("two")],
        asked=THINKS,
    ),
    "thinking that is not shown": Shape(
        "<think>plan</think>Hello",
        [thinking(""), text("Hello")],
        asked={"thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}},
    ),
    "thinking between calls": Shape(
        f"<think>a</think>{NOW}<think>b</think>{ADD}",
        [thinking("a"), CALLED, thinking("b"), ADDED],
        "tool_use",
        THINKS | TOOLS,
    ),
    "text, a call, text": Shape(
        f"First.\n{ADD}\nThen.", [text("First."), ADDED, text("Then.")], "tool_use", TOOLS
    ),
    "parallel calls": Shape(f"{ADD}\n{NOW}\n{ADD}", [ADDED, CALLED, ADDED], "tool_use", TOOLS),
    "a call without arguments": Shape(
        '<tool_call>{"name": "now"}</tool_call>', [CALLED], "tool_use", TOOLS
    ),
    "a call with eager input": Shape(
        ADD, [ADDED], "tool_use", {"tools": [{**ADD_TOOL, "eager_input_streaming": True}]}
    ),
    "a call of a strict tool": Shape(
        ADD, [ADDED], "tool_use", {"tools": [{**ADD_TOOL, "strict": True}]}
    ),
    "a call that max_tokens cuts": Shape(
        ADD,
        [call("add", {"a": 12})],
        "max_tokens",
        TOOLS | {"max_tokens": len(ADD[: ADD.index("<b>")].encode())},
    ),
    "a forced call": Shape(
        ADD, [ADDED], "tool_use", TOOLS | {"tool_choice": {"type": "tool", "name": "add"}}
    ),
    "forced calls in parallel": Shape(
        f"{ADD}\n{NOW}", [ADDED, CALLED], "tool_use", TOOLS | {"tool_choice": {"type": "any"}}
    ),
    "text that max_tokens cuts": Shape(
        "Hello there.", [text("Hello")], "max_tokens", {"max_tokens": 5}
    ),
    "text before a stop sequence": Shape(
        "one two STOP three", [text("one two ")], "stop_sequence", {"stop_sequences": ["STOP"]}
    ),
    "half a stop sequence at the end": Shape(
        "one two ST", [text("one two ST")], "end_turn", {"stop_sequences": ["STOP"]}
    ),
    "a JSON value": Shape(
        '{"city":"Paris é","sunny":true}',
        [text('{"city":"Paris é","sunny":true}')],
        asked={"output_config": {"format": {"type": "json_schema", "schema": ANSWER}}},
    ),
    "the rest of a turn": Shape("The answer is 42.", [text(" is 42.")], prefix="The answer"),
    "the rest of a turn, then a call": Shape(
        f"I look it up.\n{NOW}", [text(" it up."), CALLED], "tool_use", TOOLS, prefix="I look"
    ),
}
TITLES = list(SHAPES)


def write_shapes(folder: Path) -> None:
    """Fill `folder` with a model that writes the tape of shape k after k earlier replies."""
    write_scripted(folder, [shape.tape for shape in SHAPES.values()])


def body_of(title: str) -> Json:
    """The body of the request that is answered with this shape."""
    shape = SHAPES[title]
    body = ask(TITLES.index(title), **{"model": MODEL, **shape.asked})
    if shape.prefix:
        turns: Any = body["messages"]
        turns.append({"role": "assistant", "content": shape.prefix})
    return body


def is_as_written(message: Any, title: str) -> bool:
    """Whether `message` shows what the shape says; but for ids and signatures."""
    keys = ("type", "text", "thinking", "name", "input")
    shown = [{key: block[key] for key in keys if key in block} for block in message["content"]]
    shape = SHAPES[title]
    return (shown, message["stop_reason"]) == (shape.content, shape.stop_reason)


def without_ids(message: Any) -> Json:
    """`message` less what is new each time."""
    blocks = [{k: v for k, v in block.items() if k != "id"} for block in message["content"]]
    return {**message, "id": "", "content": blocks}
