"""Plain answers that are wrong: a message's fields, its blocks, its end, its usage."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.misbehave.mutant import Answered, Asked, Mutant, Table

Block = dict[str, Any]


def message(answered: Answered) -> dict[str, Any]:
    """The message that is answered; `{}` for any other answer."""
    value: dict[str, Any] = answered.json
    return value if value.get("type") == "message" else {}


def set_field(answered: Answered, key: str, value: object) -> None:
    """Change one field of a message; other answers stay as they are."""
    if found := message(answered):
        answered.put(found | {key: value})


def drop_field(answered: Answered, key: str) -> None:
    """Leave one field of a message out."""
    if found := message(answered):
        answered.put({name: value for name, value in found.items() if name != key})


def set_usage(answered: Answered, **counts: object) -> None:
    """Change counts of a message."""
    if found := message(answered):
        set_field(answered, "usage", found["usage"] | counts)


def map_blocks(answered: Answered, kind: str, change: Any) -> None:
    """Change every block of one type; None drops it."""
    found = message(answered)
    blocks = [
        change(block) if block["type"] == kind else block for block in found.get("content", [])
    ]
    set_field(answered, "content", [block for block in blocks if block is not None])


def no_id(asked: Asked, answered: Answered) -> None:
    """A message has no id."""
    drop_field(answered, "id")


def same_id(asked: Asked, answered: Answered) -> None:
    """Every message has the same id."""
    set_field(answered, "id", "msg_01")


def foreign_id(asked: Asked, answered: Answered) -> None:
    """The id of a message is that of another API."""
    set_field(answered, "id", "chatcmpl-1")


def no_type(asked: Asked, answered: Answered) -> None:
    """A message has no type."""
    drop_field(answered, "type")


def role_user(asked: Asked, answered: Answered) -> None:
    """The message is the user's."""
    set_field(answered, "role", "user")


def no_model(asked: Asked, answered: Answered) -> None:
    """A message names no model."""
    set_field(answered, "model", "")


def content_text(asked: Asked, answered: Answered) -> None:
    """content is a text, not a list of blocks."""
    set_field(answered, "content", "Hello.")


def no_stop_reason(asked: Asked, answered: Answered) -> None:
    """A complete message has stop_reason null."""
    set_field(answered, "stop_reason", None)


def foreign_stop_reason(asked: Asked, answered: Answered) -> None:
    """stop_reason is a word of another API."""
    set_field(answered, "stop_reason", "length")


def always_end_turn(asked: Asked, answered: Answered) -> None:
    """Every message ends with end_turn."""
    set_field(answered, "stop_reason", "end_turn")


def no_stop_sequence(asked: Asked, answered: Answered) -> None:
    """stop_sequence is left out."""
    drop_field(answered, "stop_sequence")


def stop_sequence_null(asked: Asked, answered: Answered) -> None:
    """The sequence that ended the reply is not named."""
    set_field(answered, "stop_sequence", None)


def stop_text_kept(asked: Asked, answered: Answered) -> None:
    """The stop sequence stays in the text."""
    said = message(answered).get("stop_sequence")
    if said:
        blocks = message(answered)["content"] or [{"type": "text", "text": ""}]
        set_field(answered, "content", [*blocks, {"type": "text", "text": f"x{said}"}])


def no_usage(asked: Asked, answered: Answered) -> None:
    """A message has no usage."""
    drop_field(answered, "usage")


def usage_text(asked: Asked, answered: Answered) -> None:
    """Counts are texts."""
    set_usage(answered, input_tokens="12")


def nothing_in(asked: Asked, answered: Answered) -> None:
    """The prompt is not counted."""
    set_usage(answered, input_tokens=0, cache_read_input_tokens=0, cache_creation_input_tokens=0)


def nothing_out(asked: Asked, answered: Answered) -> None:
    """The reply is not counted."""
    set_usage(answered, output_tokens=0)


def too_much_out(asked: Asked, answered: Answered) -> None:
    """The reply counts more than max_tokens."""
    found = message(answered).get("usage", {})
    set_usage(answered, output_tokens=found.get("output_tokens", 0) + 50)


def cached_twice(asked: Asked, answered: Answered) -> None:
    """input_tokens holds what was cached, too."""
    usage = message(answered).get("usage", {})
    keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    set_usage(answered, input_tokens=sum(usage.get(key) or 0 for key in keys))


def nothing_read(asked: Asked, answered: Answered) -> None:
    """What is read from the cache counts as input."""
    usage = message(answered).get("usage", {})
    read = usage.get("cache_read_input_tokens") or 0
    whole = usage.get("input_tokens", 0) + read
    set_usage(answered, input_tokens=whole, cache_read_input_tokens=0)


def always_written(asked: Asked, answered: Answered) -> None:
    """What is read from the cache counts as written again."""
    usage = message(answered).get("usage", {})
    keys = ("cache_read_input_tokens", "cache_creation_input_tokens")
    whole = sum(usage.get(key) or 0 for key in keys)
    set_usage(answered, cache_creation_input_tokens=whole, cache_read_input_tokens=0)


def ttl_ignored(asked: Asked, answered: Answered) -> None:
    """What is kept for an hour counts as kept for five minutes."""
    usage = message(answered).get("usage", {})
    written = usage.get("cache_creation_input_tokens") or 0
    split = {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0}
    set_usage(answered, cache_creation=split)


def no_cache_counts(asked: Asked, answered: Answered) -> None:
    """usage has no counts of the cache."""
    usage = message(answered).get("usage", {})
    set_field(answered, "usage", {k: v for k, v in usage.items() if "cache" not in k})


def empty_text_first(asked: Asked, answered: Answered) -> None:
    """An empty text block comes first."""
    blocks = message(answered).get("content", [])
    set_field(answered, "content", [{"type": "text", "text": ""}, *blocks])


def markup_shown(asked: Asked, answered: Answered) -> None:
    """The token that ends a turn is text."""
    map_blocks(answered, "text", lambda block: block | {"text": block["text"] + "<|im_end|>"})


def unasked_thinking(asked: Asked, answered: Answered) -> None:
    """Every reply thinks."""
    blocks = message(answered).get("content", [])
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    set_field(answered, "content", [thought, *blocks])


def input_as_text(asked: Asked, answered: Answered) -> None:
    """The input of a call is JSON in a text."""
    map_blocks(answered, "tool_use", lambda block: block | {"input": json.dumps(block["input"])})


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
    blocks = message(answered).get("content", [])
    if any(block["type"] == "tool_use" for block in blocks):
        set_field(answered, "content", [{"type": "text", "text": "Well."}, *blocks])


def other_tool(asked: Asked, answered: Answered) -> None:
    """Another tool is called than was named."""
    map_blocks(answered, "tool_use", lambda block: block | {"name": "other"})


def two_calls(asked: Asked, answered: Answered) -> None:
    """Every call is made twice."""
    blocks = message(answered).get("content", [])
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
    blocks = message(answered).get("content", [])
    set_field(answered, "content", sorted(blocks, key=lambda b: b["type"] == "thinking"))


def not_json(asked: Asked, answered: Answered) -> None:
    """A message is sent as text/html."""
    if message(answered):
        answered.headers["content-type"] = "text/html"


ANSWERS: Final = Table(
    "answer",
    {
        no_id: "message.*",
        same_id: "message.id*",
        foreign_id: "message.field*",
        no_type: "message.*",
        role_user: "message.*",
        no_model: "*model*",
        content_text: "message.*",
        no_stop_reason: "stop.known*",
        foreign_stop_reason: "stop.known*",
        always_end_turn: "stop.*",
        no_stop_sequence: "message.*",
        stop_sequence_null: "stop.sequence.named*",
        stop_text_kept: "stop.sequence.*",
        no_usage: "message.*",
        usage_text: "message.*",
        nothing_in: "message.usage*",
        nothing_out: "message.usage*",
        too_much_out: "stop.bound*",
        cached_twice: "caching.s*",
        nothing_read: "caching.read*",
        always_written: "caching.read*",
        ttl_ignored: "caching.written*",
        no_cache_counts: "message.usage*",
        empty_text_first: "message.field*",
        markup_shown: "message.no-markup*",
        unasked_thinking: "message.no-thinking*",
        input_as_text: "choice.block*",
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
        not_json: "message.field*",
    },
)
MUTANTS: Final[list[Mutant]] = ANSWERS.mutants()
