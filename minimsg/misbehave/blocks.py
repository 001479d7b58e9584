"""Plain answers whose blocks are wrong: text, calls, JSON, thinking."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.misbehave.answers import message, set_field
from minimsg.misbehave.mutant import Answered, Asked, mutants


def blocks_of(answered: Answered) -> list[dict[str, Any]]:
    """The blocks of a message; none for any other answer."""
    blocks: list[dict[str, Any]] = message(answered).get("content", [])
    return blocks


def map_blocks(answered: Answered, kind: str, change: Any) -> None:
    """Change every block of one type; None drops it."""
    blocks = [change(b) if b["type"] == kind else b for b in blocks_of(answered)]
    set_field(answered, "content", [block for block in blocks if block is not None])


def empty_text_first(asked: Asked, answered: Answered) -> None:
    """An empty text block comes first."""
    blocks = blocks_of(answered)
    set_field(answered, "content", [{"type": "text", "text": ""}, *blocks])


def markup_shown(asked: Asked, answered: Answered) -> None:
    """The token that ends a turn is text."""
    map_blocks(answered, "text", lambda block: block | {"text": block["text"] + "<|im_end|>"})


def cached_words_differ(asked: Asked, answered: Answered) -> None:
    """A reply to a prompt from the cache has other words."""
    if (message(answered).get("usage") or {}).get("cache_read_input_tokens"):
        map_blocks(answered, "text", lambda block: block | {"text": block["text"] + " And so on."})


def unasked_thinking(asked: Asked, answered: Answered) -> None:
    """Every reply thinks."""
    blocks = blocks_of(answered)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    set_field(answered, "content", [thought, *blocks])


def input_as_text(asked: Asked, answered: Answered) -> None:
    """The input of a call is JSON in a text."""
    map_blocks(answered, "tool_use", lambda block: block | {"input": json.dumps(block["input"])})


def inner_input_as_text(asked: Asked, answered: Answered) -> None:
    """An object inside the input of a call is JSON in a text."""

    def written(value: Any) -> Any:
        return json.dumps(value) if isinstance(value, dict) else value

    def change(block: dict[str, Any]) -> dict[str, Any]:
        return block | {"input": {key: written(each) for key, each in block["input"].items()}}

    map_blocks(answered, "tool_use", change)


def input_null(asked: Asked, answered: Answered) -> None:
    """The input of a call without arguments is null."""
    map_blocks(answered, "tool_use", lambda block: block | {"input": block["input"] or None})


def input_emptied(asked: Asked, answered: Answered) -> None:
    """The input of every call is empty."""
    map_blocks(answered, "tool_use", lambda block: block | {"input": {}})


def one_call_id(asked: Asked, answered: Answered) -> None:
    """Every call has the same id."""
    map_blocks(answered, "tool_use", lambda block: block | {"id": "toolu_01"})


def no_call_id(asked: Asked, answered: Answered) -> None:
    """A call has no id."""
    map_blocks(answered, "tool_use", lambda b: {k: v for k, v in b.items() if k != "id"})


def call_as_text(asked: Asked, answered: Answered) -> None:
    """A call is written as text."""
    map_blocks(
        answered,
        "tool_use",
        lambda block: {"type": "text", "text": f"<tool_call>{json.dumps(block['input'])}"},
    )


def text_before_a_call(asked: Asked, answered: Answered) -> None:
    """A forced call has text before it."""
    blocks = blocks_of(answered)
    if any(block["type"] == "tool_use" for block in blocks):
        set_field(answered, "content", [{"type": "text", "text": "Well."}, *blocks])


def other_tool(asked: Asked, answered: Answered) -> None:
    """Another tool is called than was named."""
    map_blocks(answered, "tool_use", lambda block: block | {"name": "other"})


def two_calls(asked: Asked, answered: Answered) -> None:
    """Every call is made twice."""
    blocks = blocks_of(answered)
    again = [b | {"id": b["id"] + "b"} for b in blocks if b["type"] == "tool_use"]
    set_field(answered, "content", blocks + again)


def fenced_json(asked: Asked, answered: Answered) -> None:
    """JSON that was asked for comes in a fence."""
    if "format" in asked.json.get("output_config", {}):
        map_blocks(answered, "text", lambda b: b | {"text": f"```json\n{b['text']}\n```"})


def words_around_json(asked: Asked, answered: Answered) -> None:
    """JSON that was asked for comes with words."""
    if "format" in asked.json.get("output_config", {}):
        map_blocks(answered, "text", lambda b: b | {"text": f"Here it is: {b['text']}"})


def prefix_repeated(asked: Asked, answered: Answered) -> None:
    """The beginning that was given is repeated in the reply."""
    turns = asked.json.get("messages") or [{}]
    last = turns[-1] if isinstance(turns[-1], dict) else {}
    if last.get("role") == "assistant" and isinstance(last.get("content"), str):
        map_blocks(answered, "text", lambda b: b | {"text": last["content"] + b["text"]})


def unsigned_thinking(asked: Asked, answered: Answered) -> None:
    """Thinking has no signature."""
    map_blocks(answered, "thinking", lambda b: {k: v for k, v in b.items() if k != "signature"})


def thinking_last(asked: Asked, answered: Answered) -> None:
    """Thinking comes after the text."""
    blocks = blocks_of(answered)
    set_field(answered, "content", sorted(blocks, key=lambda b: b["type"] == "thinking"))


MUTANTS: Final = mutants(
    "answer",
    {
        empty_text_first: "message.field*",
        markup_shown: "message.no-markup*",
        cached_words_differ: "caching.*",
        unasked_thinking: "message.no-thinking*",
        input_as_text: "choice.block*",
        inner_input_as_text: "structured.strict-input*",
        input_null: "choice.block*",
        input_emptied: "choice.block*",
        one_call_id: "choice.ids",
        no_call_id: "choice.*",
        call_as_text: "choice.*",
        text_before_a_call: "choice.block*",
        other_tool: "choice.tool*",
        two_calls: "choice.any-single*",
        fenced_json: "structured.*",
        words_around_json: "structured.*",
        prefix_repeated: "prefill.continued*",
        unsigned_thinking: "thinking.*",
        thinking_last: "thinking.*",
    },
)
