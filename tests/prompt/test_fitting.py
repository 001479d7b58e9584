"""What a template cannot take gets the documented other form."""

from __future__ import annotations

from typing import Any, Final

import pytest

from minimsg.prompt.chat import ChatModel
from minimsg.protocol.dialect import Dialect

from . import templates
from .conftest import CHATML, OpenModel, prompt_of, shown

Block = dict[str, Any]
OPENING: Final = "<|im_start|>assistant\n"
CALLS: Final = [
    {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "é"}},
    {"type": "tool_use", "id": "b", "name": "look", "input": {}},
]
TOOL: Final = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


def says(role: str, content: object) -> Block:
    return {"role": role, "content": content}


def result(id: str, content: str) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def of(role: str, words: str) -> str:
    """A turn as the templates here write it."""
    return f"<|im_start|>{role}\n{words}<|im_end|>\n"


def written(chat: ChatModel, *messages: Block, **body: Any) -> str:
    return shown(chat, prompt_of(chat, messages=list(messages), **body)).removesuffix(OPENING)


LOOP: Final = [
    says("user", "where?"),
    says("assistant", [text("I look."), *CALLS]),
    says("user", [result("a", "yes"), text("and?"), result("b", "no"), text("well?")]),
]
TOLD: Final = (
    "# Tools\n\nYou can call functions. Each line between <tools> and </tools> describes one in "
    "JSON:\n<tools>\n"
    '{"type": "function", "function": {"name": "look", "description": "Looks.", '
    '"parameters": {"type": "object"}}}\n'
    "</tools>\n\nTo call a function, write a JSON object with its name and its arguments between "
    "<tool_call> and </tool_call>:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)
LOOP_IN_TEXT: Final = (
    of("user", "where?")
    + of(
        "assistant",
        'I look.\n<tool_call>\n{"name": "look", "arguments": {"at": "é"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>',
    )
    + of(
        "user",
        "<tool_response>\nyes\n</tool_response>\nand?\n<tool_response>\nno\n</tool_response>\nwell?",
    )
)


@pytest.mark.parametrize(
    "source", [templates.ALTERNATING, templates.BLOCKS_ONLY, templates.BLOCKS_TOO]
)
def test_tools_of_a_template_without_a_place_for_them_are_text(
    open_model: OpenModel, source: str
) -> None:
    chat = open_model(source)
    assert written(chat, *LOOP, tools=[TOOL]) == of("system", TOLD) + LOOP_IN_TEXT
    assert written(chat, *LOOP, tools=[TOOL], system="S") == (
        of("system", f"S\n\n{TOLD}") + LOOP_IN_TEXT
    )
    assert written(chat, *LOOP) == LOOP_IN_TEXT


def test_tools_are_told_to_the_user_where_no_system_turn_is_taken(open_model: OpenModel) -> None:
    chat = open_model(templates.ALTERNATING_WITHOUT_SYSTEM)
    told = LOOP_IN_TEXT.replace("where?", f"S\n\n{TOLD}\n\nwhere?")
    assert written(chat, *LOOP, tools=[TOOL], system="S") == told


def test_only_calls_need_no_text_and_no_result_needs_one(open_model: OpenModel) -> None:
    chat = open_model(templates.ALTERNATING)
    messages = [says("user", "q"), says("assistant", CALLS[1:]), says("user", [result("b", "")])]
    assert written(chat, *messages) == (
        of("user", "q")
        + of("assistant", '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>')
        + of("user", "<tool_response>\n\n</tool_response>")
    )


def test_a_message_for_each_call_where_only_one_is_taken(open_model: OpenModel) -> None:
    messages = [says("user", "q"), LOOP[1], says("user", [result("a", "1"), result("b", "2")])]
    assert written(open_model(templates.ONE_CALL), *messages) == (
        of("user", "q")
        + of("assistant", 'I look.{"name": "look", "parameters": {"at": "é"}}')
        + of("assistant", '{"name": "look", "parameters": {}}')
        + of("tool", "1")
        + of("tool", "2")
    )


def test_arguments_are_json_text_where_the_template_wants_that(open_model: OpenModel) -> None:
    call = '<tool_call>{"name": "look", "arguments": {"at": "é"}}</tool_call>'
    messages = [says("user", "q"), says("assistant", CALLS[:1]), says("user", [result("a", "1")])]
    assert of("assistant", call) in written(open_model(templates.ARGUMENTS_AS_TEXT), *messages)


S: Final = says("system", "S")
U: Final = says("user", "U")
A: Final = says("assistant", "A")
V: Final = says("user", "V")
CALL: Final = says("assistant", CALLS[1:])
RESULT: Final = says("user", [result("b", "R")])
MADE: Final = of("assistant", '<tool_call>{"name": "look", "arguments": {}}</tool_call>')


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([U, S, V], of("user", "U") + of("user", "S\n\nV")),
        ([U, A, S, V], of("user", "U") + of("assistant", "A") + of("user", "S\n\nV")),
        ([U, S], of("user", "U\n\nS")),
        ([U, S, A, V], of("user", "U\n\nS") + of("assistant", "A") + of("user", "V")),
        ([S, U, S], of("system", "S") + of("user", "U\n\nS")),
        ([U, CALL, RESULT, S], of("user", "U") + MADE + of("tool", "R") + of("user", "S")),
        ([U, CALL, S, RESULT], of("user", "U") + MADE + of("tool", "R") + of("user", "S")),
        (
            [U, CALL, S, RESULT, V],
            of("user", "U") + MADE + of("tool", "R") + of("user", "S\n\nV"),
        ),
        (
            [U, CALL, RESULT, S, A, V],
            of("user", "U")
            + MADE
            + of("tool", "R")
            + of("user", "S")
            + of("assistant", "A")
            + of("user", "V"),
        ),
        ([S], of("user", "S")),
        ([S, A, V], of("user", "S") + of("assistant", "A") + of("user", "V")),
    ],
)
def test_a_late_system_turn_goes_to_the_user_turn_beside_it(
    open_model: OpenModel, messages: list[Block], expected: str
) -> None:
    assert written(open_model(templates.SYSTEM_FIRST), *messages) == expected


def test_folded_text_has_an_empty_line_also_where_blocks_are_taken(open_model: OpenModel) -> None:
    refuses = (
        "{% for m in messages if m.role == 'system' %}{% if m != messages[0] %}"
        "{{ raise_exception('first') }}{% endif %}{% endfor %}"
    )
    for source in (templates.BLOCKS_ONLY, templates.BLOCKS_TOO):
        chat = open_model(refuses + source)
        spoken = says("user", [text("a"), text("b")])
        assert written(chat, spoken) == of("user", "ab")
        assert written(chat, U, A, S, spoken).endswith(of("user", "S\n\na\nb"))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([U, S, V], of("user", "U\nS\n\nV")),
        ([S, U, S, A, V], of("system", "S") + of("user", "U\n\nS") + of("assistant", "A")),
        (
            [U, says("assistant", [*CALLS[1:], text("A")]), RESULT],
            of("user", "U")
            + of("assistant", '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>\nA')
            + of("user", "<tool_response>\nR\n</tool_response>"),
        ),
        ([S, A, V], of("user", "S") + of("assistant", "A") + of("user", "V")),
    ],
)
def test_roles_alternate_where_the_template_wants_them_to(
    open_model: OpenModel, messages: list[Block], expected: str
) -> None:
    assert written(open_model(templates.ALTERNATING), *messages).startswith(expected)


def test_a_clients_billing_text_is_not_read_in_compat(open_model: OpenModel) -> None:
    chat = open_model(CHATML)

    def body(suffix: str, *more: str) -> dict[str, Any]:
        system = [text(f"x-anthropic-billing-header: cc_version=1; cch={suffix};")]
        return {"messages": [U], "system": [*system, *map(text, more)]}

    first = prompt_of(chat, **body("00001", "Be brief."))
    assert first.ids == prompt_of(chat, messages=[U], system="Be brief.").ids
    assert first.ids == prompt_of(chat, **body("00002", "Be brief.")).ids
    assert first.left_out == ["system.0"]
    assert prompt_of(chat, **body("00001")).ids == prompt_of(chat, messages=[U]).ids
    strict = prompt_of(chat, Dialect(profile="strict"), **body("00001", "Be brief."))
    assert "cch=00001;\nBe brief." in shown(chat, strict)
    assert strict.left_out == []


def test_billing_text_elsewhere_is_text(open_model: OpenModel) -> None:
    system = [text("S"), text("x-anthropic-billing-header: x")]
    prompt = prompt_of(open_model(CHATML), messages=[U], system=system)
    assert prompt.left_out == []


def test_a_request_may_set_variables_of_the_template(open_model: OpenModel) -> None:
    chat = open_model(CHATML)  # which begins a reply with an empty thought if told not to think
    asked = prompt_of(chat, messages=[U])
    assert shown(chat, asked).endswith("<think>\n\n</think>\n\n")
    thinking = prompt_of(chat, messages=[U], chat_template_kwargs={"enable_thinking": True})
    assert shown(chat, thinking).endswith(OPENING)
