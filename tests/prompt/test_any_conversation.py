"""Whatever a client may say, every template shows it once, in order, and as nothing but text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings

from minimsg.errors import ModelNotFound
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import Prompt

from . import templates
from .conftest import CHATML, OpenModel, prompt_of, shown
from .conversations import Block, harmless, requests, words_of

EXAMPLES: Final = 50
OURS: Final = {"CHATML": CHATML} | {
    name: source for name, source in vars(templates).items() if name.isupper() and name[0] != "_"
}
PUBLISHED: Final = [
    "Qwen-QwQ-32B",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
]


def hold_for_any_conversation(chat: ChatModel) -> None:
    """No request fails; all of it is shown, or listed; none of it is a control token."""

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(requests())
    def check(body: Block) -> None:
        prompt = prompt_of(chat, **body)
        _shows_every_word(chat, prompt, body)
        assert prompt.left_out == _unreadable(chat, body)
        assert prompt.continues == (body["messages"][-1]["role"] == "assistant")
        assert _controls(chat, prompt) == _controls(chat, prompt_of(chat, **harmless(body)))

    check()


def _shows_every_word(chat: ChatModel, prompt: Prompt, body: Block) -> None:
    """Each word once; those of the messages in order, unless system turns had to move."""
    assert chat.traits is not None
    words = words_of(shown(chat, prompt))
    said = words_of([body.get("system"), body["messages"]])
    assert Counter(words) == Counter([*said, *words_of(body["tools"])])
    has_late_system = any(message["role"] == "system" for message in body["messages"])
    if chat.traits.takes_runs and (chat.traits.takes_late_system or not has_late_system):
        assert [word for word in words if word in said] == said


def _unreadable(chat: ChatModel, body: Block) -> list[str]:
    assert chat.traits is not None
    takes_reasoning = chat.traits.takes_reasoning

    def is_read(block: Block) -> bool:
        if block["type"] == "thinking":
            return takes_reasoning and bool(block["thinking"])
        return bool(block["type"] != "redacted_thinking")

    return [
        f"messages.{index}.content.{place}"
        for index, message in enumerate(body["messages"])
        for place, block in enumerate(message["content"])
        if not is_read(block)
    ]


def _controls(chat: ChatModel, prompt: Prompt) -> list[int]:
    controls = set(chat.tokenizer.control.values())
    return [id for id in prompt.ids if id in controls]


@pytest.mark.parametrize("name", OURS)
def test_any_conversation_is_shown_by(name: str, open_model: OpenModel) -> None:
    hold_for_any_conversation(replace(open_model(OURS[name]), max_context=1 << 20))


@pytest.mark.parametrize("name", PUBLISHED)
def test_any_conversation_is_shown_by_the_published(name: str, open_published: OpenModel) -> None:
    hold_for_any_conversation(open_published(name))


@pytest.mark.weights
def test_any_conversation_is_shown_by_the_default_model() -> None:
    hub = pytest.importorskip("minimsg.hub")
    try:
        folder = hub.resolve("smollm2", hub.default_data_dir())
    except ModelNotFound as error:
        pytest.skip(f"{error}")
    hold_for_any_conversation(replace(ChatModel.open(folder, "smollm2"), max_context=1 << 20))
