"""Thinking on the prompt's side: who can, how a template is told, what a request gets of it."""

from __future__ import annotations

from typing import Any

import pytest

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.encode import encode_pieces
from minimsg.prompt.probe_thinking import ThinkingForm
from minimsg.prompt.render import render
from minimsg.prompt.replay import Thought, put_back
from minimsg.prompt.thinking import ThinkingPlan, is_thinking_on, plan_thinking
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import MessagesRequest
from minimsg.protocol.turns import turns_of

from .conftest import CHATML, OpenModel, prompt_of, shown

STRICT = Dialect("strict")
ASK = {"role": "user", "content": "go"}
CALL = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Look first.", "signature": ""},
        {"type": "tool_use", "id": "t", "name": "now", "input": {}},
    ],
}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
TOOL = {"name": "now", "input_schema": {"type": "object"}}
ENABLED = {"type": "enabled", "budget_tokens": 2000}
ADAPTIVE = {"type": "adaptive"}
OFF = {"type": "disabled"}
BETWEEN = {"type": "between_tools"}

TURNS = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}"
    "{% endfor %}{{ '<|im_start|>assistant\n' }}"
)
SHOWN_BEFORE = TURNS.replace(
    "m.content",
    "('<think>' + m.reasoning_content + '</think>' if m.reasoning_content else '') + m.content",
)
ALWAYS_OPEN = TURNS + "{{ '<think>\n' }}"
ALWAYS_CLOSED = TURNS + "{{ '<think>\n\n</think>\n\n' }}"
OTHER_SWITCH = TURNS + "{{ '<think>' if thinking else '</think>' }}"
STRIPPED = TURNS.replace("m.content", "(m.content.split('</th' + 'ink>') | last)")
SWITCH_OF_OTHER_WORDS = TURNS + "{{ 'Think!' if enable_thinking else 'Hurry!' }}"


def request_of(**body: Any) -> MessagesRequest:
    return MessagesRequest.model_validate(
        {"model": "m", "max_tokens": 100_000, "messages": [ASK], **body}
    )


def plan(form: ThinkingForm | None, is_open: bool = False, /, **body: Any) -> ThinkingPlan:
    request = request_of(**body)
    return plan_thinking(request, form, request.max_tokens or 0, is_open=is_open)


FORM = ThinkingForm("enable_thinking")


class TestWhoThinks:
    @pytest.mark.parametrize(
        ("template", "form"),
        [
            (CHATML, ThinkingForm("enable_thinking")),
            (OTHER_SWITCH, ThinkingForm("thinking")),
            (SHOWN_BEFORE, ThinkingForm(None)),
            (ALWAYS_OPEN, ThinkingForm(None)),
            (STRIPPED, ThinkingForm(None)),
            (TURNS, None),
            (ALWAYS_CLOSED, None),
            (SWITCH_OF_OTHER_WORDS, None),
        ],
    )
    def test_it_is_seen_by_what_the_template_shows(
        self, open_model: OpenModel, template: str, form: ThinkingForm | None
    ) -> None:
        traits = open_model(template).traits
        assert traits is not None
        assert traits.thinking == form

    @pytest.mark.parametrize(
        ("name", "switch"),
        [
            ("Qwen-Qwen3-0.6B", "enable_thinking"),
            ("Qwen3.5-4B", "enable_thinking"),
            ("Qwen-QwQ-32B", "enable_thinking"),
            ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "enable_thinking"),
            ("Qwen-Qwen2.5-7B-Instruct", None),
            ("Qwen3-Coder", None),
        ],
    )
    def test_published_templates_are_told_apart(
        self, open_published: OpenModel, name: str, switch: str | None
    ) -> None:
        traits = open_published(name).traits
        assert traits is not None
        assert traits.thinking == (ThinkingForm(switch) if switch else None)


class TestPublishedPrompts:
    @pytest.mark.parametrize(
        ("name", "thinking", "end", "is_thinking"),
        [
            ("Qwen-Qwen3-0.6B", None, "assistant\n<think>\n\n</think>\n\n", False),
            ("Qwen-Qwen3-0.6B", ADAPTIVE, "<|im_start|>assistant\n", False),
            ("Qwen3.5-4B", OFF, "assistant\n<think>\n\n</think>\n\n", False),
            ("Qwen3.5-4B", ENABLED, "assistant\n<think>\n", True),
            ("Qwen-QwQ-32B", None, "assistant\n<think>\n</think>", False),
            ("Qwen-QwQ-32B", ENABLED, "assistant\n<think>\n", True),
            ("Qwen-Qwen2.5-7B-Instruct", ENABLED, "<|im_start|>assistant\n", False),
        ],
    )
    def test_the_prompt_opens_thinking_or_closes_it(
        self,
        open_published: OpenModel,
        name: str,
        thinking: object,
        end: str,
        is_thinking: bool,
    ) -> None:
        chat = open_published(name)
        prompt = prompt_of(chat, messages=[ASK], thinking=thinking)
        assert shown(chat, prompt).endswith(end)
        assert prompt.is_thinking == is_thinking

    def test_the_thoughts_of_a_running_tool_loop_are_in_the_prompt(
        self, open_published: OpenModel
    ) -> None:
        chat = open_published("Qwen-Qwen3-0.6B")
        prompt = prompt_of(chat, messages=[ASK, CALL, RESULT], tools=[TOOL], thinking=ENABLED)
        assert "<think>\nLook first.\n</think>\n\n<tool_call>" in shown(chat, prompt)
        assert chat.tokenizer.control["<think>"] in prompt.ids


def ids_of(chat: ChatModel, text: str) -> list[int]:
    """`text` as a model writes it, its tags as tokens."""
    assert chat.template is not None
    marks = chat.template.marks
    return encode_pieces(marks.split(marks.mark(text)), chat.tokenizer).ids


WRITTEN = {
    "Qwen-Qwen3-0.6B": (
        "<think>\nLook first.\n</think>\n\n"
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    ),
    "Qwen3.5-4B": (
        "Look first.\n</think>\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>"
    ),
}


@pytest.mark.parametrize("is_dropped", [False, True])
@pytest.mark.parametrize("name", WRITTEN)
def test_the_next_prompt_begins_with_what_the_model_wrote(
    open_published: OpenModel, name: str, is_dropped: bool
) -> None:
    chat = open_published(name)
    fields: dict[str, Any] = {"tools": [TOOL], "thinking": ADAPTIVE}
    first = prompt_of(chat, messages=[ASK], **fields)
    written = [*first.ids, *ids_of(chat, WRITTEN[name])]
    call = {**CALL, "content": CALL["content"][1:]} if is_dropped else CALL
    request = request_of(messages=[ASK, call, RESULT], **fields)
    turns = turns_of(request.messages)
    digest = put_back([], turns[:2], {}).digest
    remembered = {digest: [Thought(0, "Look first.")]}
    prompt = render(request, chat, remembered=remembered)
    assert prompt.ids[: len(written)] == written
    assert prompt.replay is not None
    assert prompt.replay.recalled == ([digest] if is_dropped else [])


class TestOpenThinking:
    def test_a_users_tag_opens_nothing(self, chat: ChatModel) -> None:
        message = {"role": "user", "content": "<think>"}
        assert not prompt_of(chat, messages=[message], thinking=ENABLED).is_thinking

    @pytest.mark.parametrize("thinking", [None, OFF, ENABLED])
    def test_a_template_that_knows_no_other_way_is_followed(
        self, open_model: OpenModel, thinking: object
    ) -> None:
        prompt = prompt_of(open_model(ALWAYS_OPEN), messages=[ASK], thinking=thinking)
        assert prompt.is_thinking

    def test_nobody_thinks_before_an_assistant_prefix(self, open_model: OpenModel) -> None:
        chat = open_model(ALWAYS_OPEN)
        prefix = {"role": "assistant", "content": "hello"}
        prompt = prompt_of(chat, messages=[ASK, prefix], thinking=ADAPTIVE)
        assert shown(chat, prompt).endswith("assistant\n<think>\n</think>\n\nhello")
        assert prompt.ids.count(chat.tokenizer.control["</think>"]) == 1
        assert not prompt.is_thinking


class TestWhatIsAsked:
    @pytest.mark.parametrize(
        ("thinking", "expected"),
        [
            (None, ThinkingPlan("none")),
            (OFF, ThinkingPlan("none")),
            (ENABLED, ThinkingPlan("shown", 2000)),
            ({**ENABLED, "display": "omitted"}, ThinkingPlan("omitted", 2000)),
            ({**ENABLED, "display": "summarized"}, ThinkingPlan("shown", 2000)),
            ({**ENABLED, "display": "updates"}, ThinkingPlan("shown", 2000)),
            (ADAPTIVE, ThinkingPlan("shown", 16_384)),
            ({**ADAPTIVE, "display": "omitted"}, ThinkingPlan("omitted", 16_384)),
            (BETWEEN, ThinkingPlan("none")),
        ],
    )
    def test_every_form(self, thinking: object, expected: ThinkingPlan) -> None:
        assert plan(FORM, thinking=thinking) == expected

    @pytest.mark.parametrize("thinking", [None, OFF, ENABLED, ADAPTIVE, BETWEEN])
    def test_a_model_that_cannot_think_does_not(self, thinking: object) -> None:
        assert plan(None, thinking=thinking) == ThinkingPlan("none")

    @pytest.mark.parametrize(
        ("effort", "budget"),
        [("low", 1_024), ("medium", 4_096), ("high", 16_384), ("xhigh", 32_768), ("max", None)],
    )
    def test_an_effort_is_a_budget(self, effort: str, budget: int | None) -> None:
        assert plan(FORM, thinking=ADAPTIVE, output_config={"effort": effort}) == ThinkingPlan(
            "shown", budget
        )

    def test_a_budget_of_our_own_leaves_room_for_the_answer(self) -> None:
        assert plan(FORM, thinking=ADAPTIVE, max_tokens=1_000).budget_tokens == 750
        assert plan(FORM, thinking=ENABLED, max_tokens=1_000).budget_tokens == 2_000

    @pytest.mark.parametrize("thinking", [None, OFF])
    def test_a_model_that_thinks_anyway_is_made_to_answer(self, thinking: object) -> None:
        assert plan(FORM, True, thinking=thinking) == ThinkingPlan("none", 1_024)
        assert plan(FORM, True, thinking=thinking, max_tokens=100).budget_tokens == 75

    def test_the_last_system_turn_with_an_effort_decides(self) -> None:
        turns = [
            ASK,
            {"role": "system", "content": "a", "output_config": {"effort": "max"}},
            {"role": "system", "content": "b", "output_config": {"effort": "low"}},
            {"role": "system", "content": "c"},
        ]
        asked = {"thinking": ADAPTIVE, "messages": turns, "output_config": {"effort": "high"}}
        assert plan(FORM, **asked).budget_tokens == 1_024

    def test_between_tools_is_after_results(self) -> None:
        late = {"role": "system", "content": "Be brief."}
        loop = {"thinking": BETWEEN, "messages": [ASK, CALL, RESULT], "tools": [TOOL]}
        assert plan(FORM, **loop) == ThinkingPlan("shown", 16_384)
        for turns, is_due in [
            ([ASK, CALL, RESULT], True),
            ([ASK, CALL, RESULT, late], True),
            ([ASK, CALL, RESULT, CALL, ASK], False),
        ]:
            assert is_thinking_on(request_of(**loop | {"messages": turns}), FORM) == is_due


class TestTemplateVariables:
    def test_a_variable_asks_for_thinking_by_itself(self) -> None:
        assert plan(FORM, chat_template_kwargs={"enable_thinking": True}) == ThinkingPlan("shown")

    def test_a_variable_goes_before_the_field(self) -> None:
        off = {"enable_thinking": False}
        assert not is_thinking_on(request_of(thinking=ENABLED, chat_template_kwargs=off), FORM)
        on = {"enable_thinking": True}
        asked = {"thinking": OFF, "chat_template_kwargs": on}
        assert is_thinking_on(request_of(**asked), FORM)
        assert plan(FORM, **asked) == ThinkingPlan("none")

    def test_another_models_variable_changes_nothing(self) -> None:
        request = request_of(chat_template_kwargs={"thinking": True})
        assert not is_thinking_on(request, FORM)

    def test_the_templates_own_variable_is_set(self, open_model: OpenModel) -> None:
        chat = open_model(OTHER_SWITCH)
        on = prompt_of(chat, messages=[ASK], thinking=ADAPTIVE)
        assert shown(chat, on).endswith("<think>")
        assert shown(chat, prompt_of(chat, messages=[ASK])).endswith("</think>")


class TestThoughtsOfEarlierTurns:
    HISTORY = ({**CALL, "content": [*CALL["content"][:1], {"type": "text", "text": "b"}]}, ASK)

    def read(self, chat: ChatModel, dialect: Dialect, thinking: object) -> tuple[bool, list[str]]:
        prompt = prompt_of(chat, dialect, messages=[ASK, *self.HISTORY], thinking=thinking)
        return "Look first." in shown(chat, prompt), prompt.left_out

    @pytest.mark.parametrize("thinking", [None, OFF, ENABLED, ADAPTIVE])
    def test_they_are_read_in_compat(self, open_model: OpenModel, thinking: object) -> None:
        chat = open_model(SHOWN_BEFORE)
        assert self.read(chat, Dialect(), thinking) == (True, [])

    def test_strict_skips_them_when_thinking_is_off(self, open_model: OpenModel) -> None:
        chat = open_model(SHOWN_BEFORE)
        assert self.read(chat, STRICT, None) == (False, ["messages.1.content.0"])
        assert self.read(chat, STRICT, OFF) == (False, ["messages.1.content.0"])
        assert self.read(chat, STRICT, ENABLED) == (True, [])

    def test_an_empty_one_is_left_out(self, open_model: OpenModel) -> None:
        empty = {"type": "thinking", "thinking": "", "signature": "theirs"}
        answer = {"role": "assistant", "content": [empty, {"type": "text", "text": "b"}]}
        prompt = prompt_of(open_model(SHOWN_BEFORE), messages=[ASK, answer, ASK])
        assert prompt.left_out == ["messages.1.content.0"]
