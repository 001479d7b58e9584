"""Blocks of every kind reach the template in the order in which the client wrote them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from minimsg.errors import InvalidRequest
from minimsg.prompt.chat import ChatModel

from .conftest import CHATML, OpenModel, prompt_of, shown
from .templates import TOOLED

Block = dict[str, Any]
OPENING: Final = "<|im_start|>assistant\n"


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(id: str, **input: Any) -> Block:
    return {"type": "tool_use", "id": id, "name": "look", "input": input}


def result(id: str, content: Any = None, **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def thought(words: str) -> Block:
    return {"type": "thinking", "thinking": words, "signature": "s"}


def turn(role: str, *blocks: Block | str, **more: Any) -> Block:
    listed = [text(block) if isinstance(block, str) else block for block in blocks]
    return {"role": role, "content": listed, **more}


@pytest.fixture
def tooled(open_model: OpenModel) -> ChatModel:
    return open_model(TOOLED)


def written(chat: ChatModel, *messages: Block, **body: Any) -> str:
    return shown(chat, prompt_of(chat, messages=list(messages), **body)).removesuffix(OPENING)


def of(role: str, words: str) -> str:
    """A turn as the template writes it."""
    return f"<|im_start|>{role}\n{words}<|im_end|>\n"


LOOK: Final = '<tool_call>{"name": "look", "arguments": %s}</tool_call>'


def test_a_tool_loop_is_calls_and_results(tooled: ChatModel) -> None:
    assert written(
        tooled,
        turn("user", "where?"),
        turn("assistant", "I look.", call("a", at="home"), call("b")),
        turn("user", result("a", "no"), result("b", [text("yes"), text("here")])),
        turn("assistant", "Home."),
        turn("user", "thanks"),
    ) == (
        of("user", "where?")
        + of("assistant", "I look." + LOOK % '{"at": "home"}' + LOOK % "{}")
        + of("tool", "no")
        + of("tool", "yes\nhere")
        + of("assistant", "Home.")
        + of("user", "thanks")
    )


def test_a_result_out_of_turn_says_whose_it_is(tooled: ChatModel) -> None:
    messages = [
        turn("user", "where?"),
        turn("assistant", call("a"), call("b"), call("c")),
        turn("user", result("a", "1"), result("c", "3"), "and?", result("b", "2", is_error=True)),
        turn("assistant", call("d"), call("e")),
        turn("user", result("d", "4"), result("e", "5")),
    ]
    expected = of("tool", "1") + of("tool", "Result of call 3, look:\n3") + of("user", "and?")
    expected += of("tool", "Result of call 2, look:\nError: 2")
    whole = written(tooled, *messages)
    assert expected in whole
    assert whole.endswith(of("tool", "4") + of("tool", "5"))


def test_text_between_results_stays_between_them(tooled: ChatModel) -> None:
    assert written(
        tooled,
        turn("user", "where?"),
        turn("assistant", call("a"), call("b")),
        turn("user", result("a", "1"), "and?", "so?", result("b", "2"), "well?"),
    ).endswith(of("tool", "1") + of("user", "and?\nso?") + of("tool", "2") + of("user", "well?"))


def test_what_follows_a_call_is_no_part_of_what_precedes_it(tooled: ChatModel) -> None:
    assert written(
        tooled,
        turn("user", "q"),
        turn("assistant", thought("t1"), "x", call("a"), "y", thought("t2"), call("b"), call("c")),
        turn("user", result("a"), result("b"), result("c")),
    ) == (
        of("user", "q")
        + of("assistant", "<think>t1</think>x" + LOOK % "{}")
        + of("assistant", "y")
        + of("assistant", "<think>t2</think>" + LOOK % "{}" * 2)
        + of("tool", "") * 3
    )


@pytest.mark.parametrize(
    ("content", "is_error", "expected"),
    [
        ("no such file", True, "Error: no such file"),
        (None, True, "Error"),
        ([], True, "Error"),
        ("fine", False, "fine"),
        ("fine", None, "fine"),
        ("", None, ""),
        (None, None, ""),
        ([], None, ""),
        ([text("a"), {"type": "tool_reference", "tool_name": "t"}], True, "Error: a\n"),
    ],
)
def test_a_result_that_is_an_error_says_so(
    tooled: ChatModel, content: Any, is_error: bool | None, expected: str
) -> None:
    answer = turn("user", result("a", content, is_error=is_error))
    tools = [{"name": "t", "input_schema": {}, "defer_loading": True}]
    prompt = written(tooled, turn("user", "q"), turn("assistant", call("a")), answer, tools=tools)
    assert f"<|im_start|>tool\n{expected}" in prompt


def test_thoughts_are_left_out_and_listed_where_the_template_has_no_place(
    open_model: OpenModel,
) -> None:
    chat = open_model(CHATML)
    messages = [
        turn("user", "q"),
        turn("assistant", thought("secret"), "a"),
        turn("user", "r"),
        turn("assistant", {"type": "redacted_thinking", "data": "x"}),
        turn("user", "s"),
    ]
    prompt = prompt_of(chat, messages=messages)
    assert prompt.left_out == ["messages.1.content.0", "messages.3.content.0"]
    assert shown(chat, prompt).startswith(
        of("user", "q") + of("assistant", "a") + of("user", "r\ns")
    )


def test_redacted_thinking_is_left_out_of_every_prompt(tooled: ChatModel) -> None:
    redacted = {"type": "redacted_thinking", "data": "x"}
    messages = [turn("user", "q"), turn("assistant", redacted, "a"), turn("user", "r")]
    assert prompt_of(tooled, messages=messages).left_out == ["messages.1.content.0"]


def test_a_system_turn_stays_in_its_place(tooled: ChatModel) -> None:
    assert written(
        tooled,
        turn("user", "q"),
        turn("assistant", call("a")),
        turn("system", "early"),
        turn("user", result("a", "1")),
        turn("system", "late", "r"),
    ).endswith(of("system", "early") + of("tool", "1") + of("system", "late\nr"))


def test_system_turns_in_front_join_the_system_prompt(tooled: ChatModel) -> None:
    messages = [turn("system", "b"), turn("system", "c"), turn("user", "q")]
    assert written(tooled, *messages, system="a") == of("system", "a\nb\nc") + of("user", "q")


def test_a_system_turn_that_clears_is_gone_once_the_user_speaks(tooled: ChatModel) -> None:
    clears = {"clear_at": "next_user_message"}
    messages = [
        turn("user", "a"),
        turn("system", "gone", **clears),
        turn("user", "b"),
        turn("system", "kept", clear_at="never"),
        turn("user", "c"),
        turn("system", "last", **clears),
    ]
    assert written(tooled, *messages) == (
        of("user", "a\nb") + of("system", "kept") + of("user", "c") + of("system", "last")
    )
    assert prompt_of(tooled, messages=messages).left_out == []


def test_everything_before_the_last_summary_is_not_read(tooled: ChatModel) -> None:
    def summary(words: str | None) -> Block:
        return {"type": "compaction", "content": words}

    messages = [
        turn("user", "old"),
        turn("assistant", summary("older"), "old"),
        turn("user", "old"),
        turn("assistant", summary("short"), "new"),
        turn("user", "q"),
    ]
    expected = of("user", "<summary>\nshort\n</summary>") + of("assistant", "new")
    assert written(tooled, *messages, system="S") == of("system", "S") + expected + of("user", "q")
    messages[3] = turn("assistant", summary("short"))
    assert written(tooled, *messages) == of("user", "<summary>\nshort\n</summary>\nq")


def test_a_summary_that_nobody_can_read_replaces_nothing(tooled: ChatModel) -> None:
    sealed = {"type": "compaction", "content": None, "encrypted_content": "x"}
    messages = [turn("user", "old"), turn("assistant", sealed, "a"), turn("user", "q")]
    assert written(tooled, *messages) == of("user", "old") + of("assistant", "a") + of("user", "q")
    assert prompt_of(tooled, messages=messages).left_out == ["messages.1.content.0"]


def test_a_prefix_goes_on_after_a_tool_loop_and_after_a_summary(tooled: ChatModel) -> None:
    asked = [
        turn("user", "q"),
        turn("assistant", call("a")),
        turn("user", result("a", "1")),
    ]
    plain = prompt_of(tooled, messages=asked)
    begun = prompt_of(tooled, messages=[*asked, turn("assistant", thought("t"), "So", "it")])
    assert begun.ids == plain.ids + tooled.tokenizer.encode("So\nit", at_start=False)
    assert begun.continues
    assert begun.left_out == ["messages.3.content.0"]
    compaction = {"type": "compaction", "content": "c"}
    assert shown(
        tooled,
        prompt_of(tooled, messages=[turn("user", "q"), turn("assistant", compaction, "So")]),
    ) == (of("user", "<summary>\nc\n</summary>") + OPENING + "So")


def test_a_prefix_that_calls_a_tool_is_refused(tooled: ChatModel) -> None:
    messages = [turn("user", "q"), turn("assistant", "a", call("a"))]
    with pytest.raises(InvalidRequest, match=r"^messages\.1\.content\.1: the result of this"):
        prompt_of(tooled, messages=messages)


def test_a_conversation_of_nothing_that_is_read_is_refused(tooled: ChatModel) -> None:
    messages = [{"role": "system", "content": [], "output_config": {"effort": "low"}}]
    with pytest.raises(InvalidRequest, match=r"^messages: the model reads nothing"):
        prompt_of(tooled, messages=messages)
