"""What is remembered of replies: within bounds, by tenant, in the form in which it comes back."""

from __future__ import annotations

import pytest

from minimsg.parsing.segments import (
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.prompt.replay import Thought, put_back
from minimsg.protocol.request import MessagesRequest
from minimsg.protocol.turns import Turn, turns_of
from minimsg.server.remembered import ENTRY_BYTES, Listener, ThinkingMemory


def thought(text: str) -> list[Thought]:
    return [Thought(0, text)]


class TestMemory:
    def test_a_tenant_gets_back_what_was_kept_for_it(self) -> None:
        memory = ThinkingMemory()
        memory.remember("alice", "d", thought("a"))
        memory.remember("bob", "d", thought("b"))
        assert memory.of("alice") == {"d": (Thought(0, "a"),)}
        assert memory.of("carol") == {}

    def test_the_least_recently_used_go_first(self) -> None:
        size = 100
        memory = ThinkingMemory(max_bytes=3 * (size + ENTRY_BYTES))
        for digest in "abc":
            memory.remember("t", digest, thought("x" * size))
        memory.touch("t", ["a", "unknown"])
        memory.touch("nobody", ["a"])
        memory.remember("t", "d", thought("x" * size))
        assert set(memory.of("t")) == {"a", "c", "d"}

    def test_more_than_fits_is_not_kept(self) -> None:
        memory = ThinkingMemory(max_bytes=1_000)
        memory.remember("t", "a", thought("\u00e9" * 500))
        assert memory.of("t") == {}

    def test_the_same_conversation_is_kept_once(self) -> None:
        memory = ThinkingMemory(max_bytes=300)
        for text in ("first", "again"):
            memory.remember("t", "a", thought(text))
        assert memory.of("t") == {"a": (Thought(0, "again"),)}

    def test_tenants_are_bounded(self) -> None:
        memory = ThinkingMemory(max_tenants=2)
        for tenant in "abac":
            memory.remember(tenant, "d", thought("x"))
        assert [bool(memory.of(tenant)) for tenant in "abc"] == [True, False, True]

    def test_a_copy_does_not_change(self) -> None:
        memory = ThinkingMemory()
        memory.remember("t", "a", thought("x"))
        copy = memory.of("t")
        memory.remember("t", "b", thought("x"))
        assert set(copy) == {"a"}


def turns(*contents: object) -> list[Turn]:
    """Turns of a user and an assistant, by turns."""
    roles = ["user", "assistant"] * len(contents)
    messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]
    request = MessagesRequest.model_validate({"model": "m", "max_tokens": 1, "messages": messages})
    return turns_of(request.messages)


def heard(*segments: Segment) -> Listener:
    listener = Listener()
    for segment in segments:
        listener.push(segment)
    return listener


CALL = {"type": "tool_use", "id": "t", "name": "add", "input": {"b": [1], "a": "\u00e9"}}
EMPTY_CALL = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
REPLIES: dict[str, tuple[Listener, object, list[Thought]]] = {
    "thinking, then text": (
        heard(ThinkingSegment("pl"), ThinkingSegment("an"), TextSegment("He"), TextSegment("llo")),
        "Hello",
        [Thought(0, "plan")],
    ),
    "between texts": (
        heard(TextSegment("a "), ThinkingSegment("x"), TextSegment("b")),
        [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}],
        [Thought(1, "x")],
    ),
    "before and after a call": (
        heard(
            ThinkingSegment("x"),
            ToolCallStart("add"),
            ToolCallInput('{"a": "\u00e9", '),
            ToolCallInput('"b": [1]}'),
            ToolCallEnd(),
            ThinkingSegment("y"),
            ToolCallStart("now"),
            ToolCallInput("{}"),
            ToolCallEnd(),
            ThinkingSegment("z"),
        ),
        [CALL, EMPTY_CALL],
        [Thought(0, "x"), Thought(1, "y"), Thought(2, "z")],
    ),
    "a call that was cut": (
        heard(ThinkingSegment("x"), ToolCallStart("now")),
        [EMPTY_CALL],
        [Thought(0, "x")],
    ),
    "blank text that clients drop": (
        heard(TextSegment(" \n"), ThinkingSegment("x"), TextSegment("a")),
        "a",
        [Thought(0, "x")],
    ),
}


class TestListener:
    @pytest.mark.parametrize("title", REPLIES)
    def test_a_reply_is_known_again_in_what_a_client_sends_back(self, title: str) -> None:
        listener, content, thoughts = REPLIES[title]
        assert listener.thoughts == thoughts
        asked = put_back([], turns("go"), {})
        digest = listener.digest(asked.digest)
        replay = put_back([], turns("go", content, "more"), {digest: thoughts})
        assert replay.recalled == [digest]
        placed = [
            (len([b for b in replay.turns[1].blocks[:n] if b.block.type != "thinking"]), p.block)
            for n, p in enumerate(replay.turns[1].blocks)
        ]
        found = [Thought(n, b.thinking) for n, b in placed if b.type == "thinking"]
        assert found == thoughts

    def test_a_reply_without_thinking_has_no_thoughts(self) -> None:
        assert heard(TextSegment("a")).thoughts == []


class TestPuttingBack:
    @pytest.mark.parametrize(
        "block",
        [
            {"type": "thinking", "thinking": "mine", "signature": ""},
            {"type": "thinking", "thinking": "", "signature": "theirs"},
            {"type": "redacted_thinking", "data": "x"},
        ],
    )
    def test_a_turn_that_brings_its_own_is_left_alone(self, block: object) -> None:
        digest = put_back([], turns("go", "a"), {}).digest
        given = turns("go", [block, {"type": "text", "text": "a"}], "more")
        replay = put_back([], given, {digest: thought("x")})
        assert replay.turns == given
        assert replay.recalled == []

    def test_an_empty_block_without_signature_is_replaced(self) -> None:
        digest = put_back([], turns("go", "a"), {}).digest
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        given = turns("go", [empty, {"type": "text", "text": "a"}], "more")
        (_, answer, _) = put_back([], given, {digest: thought("x")}).turns
        assert [getattr(p.block, "thinking", None) for p in answer.blocks] == ["x", None]

    def test_a_thought_has_the_path_of_a_block_that_was_sent(self) -> None:
        given = turns("go", [EMPTY_CALL, {"type": "text", "text": "a"}])
        digest = put_back([], given, {}).digest
        thoughts = [Thought(0, "x"), Thought(1, "y"), Thought(2, "z")]
        answer = put_back([], given, {digest: thoughts}).turns[1]
        paths = [placed.path for placed in answer.blocks]
        assert paths == [f"messages.1.content.{n}" for n in (0, 0, 1, 1, 1)]

    def test_a_users_turn_has_no_thoughts(self) -> None:
        digest = put_back([], turns("go"), {}).digest
        assert put_back([], turns("go"), {digest: thought("x")}).recalled == []

    def test_a_system_prompt_is_part_of_the_conversation(self) -> None:
        system = turns("You are brief.")
        assert put_back(system, turns("go"), {}).digest != put_back([], turns("go"), {}).digest
