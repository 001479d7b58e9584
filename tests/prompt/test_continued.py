"""A conversation that goes on keeps the ids that its marks cover, and finds them again.

The next request has the same turns, the assistant's answer, another question, and its
marks elsewhere. Where a template writes an old turn in another form once others follow,
its ids differ from there on, and so may those of a mark behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.engine.types import CacheMark
from minimsg.prompt.caching import cache_marks
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import render
from minimsg.protocol.request import MessagesRequest

from .conftest import CHATML, OpenModel
from .conversations import Block, requests
from .templates import ALTERNATING, TOOLED
from .test_any_conversation import PUBLISHED

EXAMPLES: Final = 30
MARK: Final = {"type": "ephemeral"}
AUTOMATIC: Final = {"cache_control": MARK}
ANSWER: Final = {"role": "assistant", "content": [{"type": "text", "text": "Well, so it is."}]}
QUESTION: Final = {"role": "user", "content": [{"type": "text", "text": "And then? Tell me."}]}
# They write an answer without its thinking, or without empty tags for it, once a user replies.
FORGETFUL: Final = {"Qwen-Qwen3-0.6B", "Qwen3.5-4B"}
WRITTEN: Final = {"CHATML": CHATML, "TOOLED": TOOLED, "ALTERNATING": ALTERNATING}


def marked(blocks: Sequence[Block], places: Collection[int]) -> list[Block]:
    """`blocks`, those at `places` with a mark, if they may have one."""
    return [
        {**block, "cache_control": MARK}
        if place in places and block.get("type", "tool") in ("text", "tool", "tool_result")
        else block
        for place, block in enumerate(blocks)
    ]


def with_marks(body: Block, places: Collection[int]) -> Block:
    """`body` with marks at some places of each list of blocks."""
    messages = [{**m, "content": marked(m["content"], places)} for m in body["messages"]]
    tools = marked(body["tools"], places)
    system = {"system": marked(body["system"], places)} if "system" in body else {}
    return {**body, "messages": messages, "tools": tools, **system}


def read(chat: ChatModel, body: Block) -> tuple[list[int], tuple[CacheMark, ...]]:
    """The ids and the marks of a request; its types are checked, no rules."""
    request = MessagesRequest.model_validate({"model": "m", "max_tokens": 1, **body})
    prompt = render(request, chat)
    return prompt.ids, cache_marks(prompt, request, chat, 0)


def hold_for_any_conversation(chat: ChatModel, *, is_forgetful: bool = False) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(requests(), st.sets(st.integers(0, 2), max_size=2))
    def check(body: Block, places: set[int]) -> None:
        if body["messages"][-1]["role"] == "assistant":
            body["messages"].pop()  # a prefix: another answer than the one that comes
        asked = with_marks(body, places)
        ids, marks = read(chat, {**asked, **AUTOMATIC})
        more = {**asked, "messages": [*asked["messages"], ANSWER, QUESTION]}
        then_ids, then_marks = read(chat, {**more, **AUTOMATIC})
        looked_for = {length for mark in then_marks for length in (mark.num_tokens, *mark.earlier)}
        for mark in marks:
            is_kept = then_ids[: mark.num_tokens] == ids[: mark.num_tokens]
            assert is_kept or is_forgetful
            assert not is_kept or mark.num_tokens in looked_for

    check()


@pytest.mark.parametrize("name", WRITTEN)
def test_with_a_template_of_ours(name: str, open_model: OpenModel) -> None:
    hold_for_any_conversation(replace(open_model(WRITTEN[name]), max_context=1 << 20))


@pytest.mark.parametrize("name", PUBLISHED)
def test_with_a_published_template(name: str, open_published: OpenModel) -> None:
    hold_for_any_conversation(open_published(name), is_forgetful=name in FORGETFUL)
