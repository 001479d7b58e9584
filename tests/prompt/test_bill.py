"""A bill by hand: bytes and control tokens, counted on the request and on the template."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.prompt.bill import bill_of
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.edits import CLEARED_RESULT
from minimsg.prompt.render import render
from minimsg.protocol.counting import TokenBill
from minimsg.protocol.request import CountTokensRequest

TURN: Final = 2 + len("\n\n")  # two control tokens, two line breaks
START: Final = 1 + len("assistant\n") + 1 + len("\n\n") + 1 + len("\n\n")  # of the reply
SCHEMA: Final = {"type": "object", "properties": {}}


def bill(chat: ChatModel, **body: Any) -> TokenBill:
    """The bill of a request; it must add up."""
    request = CountTokensRequest.parse({"model": "m", **body})
    prompt = render(request, chat)
    made = bill_of(prompt, request, chat)
    amounts = [*made["blocks"].values(), *made["tools"].values(), made["template"]]
    assert sum(amounts) == len(prompt.ids)
    return made


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def test_each_block_costs_its_text_and_the_template_the_rest(chat: ChatModel) -> None:
    messages = [user("abc", "é"), {"role": "assistant", "content": "yes"}, user("<think>")]
    assert bill(chat, system="So.", messages=messages) == {
        "blocks": {
            "system.0": 3,
            "messages.0.content.0": 3,
            "messages.0.content.1": 2,
            "messages.1.content.0": 3,
            "messages.2.content.0": 7,
        },
        "tools": {},
        "template": len("system" + "user" + "assistant" + "user") + 4 * TURN + 1 + START,
    }


def test_an_assistant_prefix_costs_what_it_says(chat: ChatModel) -> None:
    messages = [user("a"), {"role": "assistant", "content": "yes,"}]
    assert bill(chat, messages=messages) == {
        "blocks": {"messages.0.content.0": 1, "messages.1.content.0": 4},
        "tools": {},
        "template": len("user") + TURN + START,
    }


def test_what_the_model_does_not_read_costs_nothing(chat: ChatModel) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    made = bill(
        chat,
        system=[{"type": "text", "text": "x-anthropic-billing-header: 1"}],
        tools=[
            {"name": "a", "input_schema": SCHEMA},
            {"name": "b", "input_schema": SCHEMA, "defer_loading": True},
        ],
        messages=[
            user("a"),
            {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]},
            user("c"),
        ],
    )
    assert made["tools"]["tools.1"] == 0 < made["tools"]["tools.0"]
    assert made["blocks"] == {
        "system.0": 0,
        "messages.0.content.0": 1,
        "messages.1.content.0": 0,
        "messages.1.content.1": 1,
        "messages.2.content.0": 1,
    }


def test_a_tool_told_in_text_costs_its_line_of_json(chat: ChatModel) -> None:
    tool = {"name": "now", "description": "A clock.", "input_schema": SCHEMA}
    function = {"name": "now", "description": "A clock.", "parameters": SCHEMA}
    made = bill(chat, tools=[tool], messages=[user("a")])
    assert made["tools"]["tools.0"] == len(json.dumps({"type": "function", "function": function}))


def test_a_block_pays_for_what_is_in_it(chat: ChatModel) -> None:
    tool = {"name": "now", "input_schema": SCHEMA}
    addition = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}
    messages = [user("a"), {"role": "system", "content": [addition]}]
    made = bill(chat, messages=messages)
    line = {"type": "function", "function": {"name": "now", "parameters": SCHEMA}}
    told = len("The tool now is available now.") - 1  # "he" is one token
    assert made["blocks"]["messages.1.content.0"] == len(json.dumps(line)) + told


def test_a_cleared_result_costs_its_placeholder(chat: ChatModel) -> None:
    call = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 99}
    none = {"type": "tool_uses", "value": 0}
    edit = {"type": "clear_tool_uses_20250919", "trigger": none, "keep": none}
    made = bill(
        chat,
        messages=[
            user("a"),
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        context_management={"edits": [edit]},
    )
    frame = "<tool_response>\n\n</tool_response>"
    assert made["blocks"]["messages.2.content.0"] == len(f"{frame}{CLEARED_RESULT}")
