"""Edits that a request asks for are made, and told in the reply, the stream and the count.

The scripted model reads bytes, so what a cleared result saves is the difference in bytes.
"""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

from minimsg.prompt.edits import CLEARED_RESULT

from .running import Json, Running

RESULT: Final = "a line of a long file\n" * 20
SAVED: Final = len(RESULT) - len(CLEARED_RESULT)
ALWAYS: Final[Json] = {"type": "tool_uses", "value": 0}
ONE: Final[Json] = {"type": "tool_uses", "value": 1}
CLEAR: Final[Json] = {"type": "clear_tool_uses_20250919", "trigger": ALWAYS, "keep": ONE}
APPLIED: Final[Json] = {
    "type": "clear_tool_uses_20250919",
    "cleared_input_tokens": SAVED,
    "cleared_tool_uses": 1,
}
COUNT: Final = "/v1/messages/count_tokens"


def ask(*edits: JsonValue, results: tuple[str, ...] = (RESULT, RESULT)) -> Json:
    """A question and a call with its result for each of `results`."""
    messages: list[JsonValue] = [{"role": "user", "content": "go"}]
    for number, result in enumerate(results):
        id = f"toolu_{number}"
        call: Json = {"type": "tool_use", "id": id, "name": "read", "input": {}}
        answer: Json = {"type": "tool_result", "tool_use_id": id, "content": result}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answer]},
        ]
    body: Json = {"model": "scripted", "messages": messages}
    return {**body, "context_management": {"edits": [*edits]}}


def input_tokens(message: JsonValue) -> int:
    assert isinstance(message, dict)
    usage = message["usage"]
    assert isinstance(usage, dict)
    return int(str(usage["input_tokens"]))


async def test_a_reply_tells_what_was_cleared_and_costs_that_much_less(scripted: Running) -> None:
    whole, _ = await scripted.post({**ask(), "max_tokens": 9})
    cleared, _ = await scripted.post({**ask(CLEAR), "max_tokens": 9})
    assert whole["context_management"] == {"applied_edits": []}
    assert cleared["context_management"] == {"applied_edits": [APPLIED]}
    assert input_tokens(whole) - input_tokens(cleared) == SAVED


async def test_a_stream_tells_it_at_its_end(scripted: Running) -> None:
    events = await scripted.stream({**ask(CLEAR), "max_tokens": 9})
    ends = [event for event in events if event["type"] == "message_delta"]
    assert [end["context_management"] for end in ends] == [{"applied_edits": [APPLIED]}]
    assert input_tokens(events[0]["message"]) == input_tokens(ends[0])


async def test_nothing_is_told_to_those_who_asked_for_nothing(scripted: Running) -> None:
    body = ask()
    del body["context_management"]
    message, _ = await scripted.post({**body, "max_tokens": 9})
    assert not message.get("context_management")
    count, _ = await scripted.post(body, COUNT)
    assert list(count) == ["input_tokens"]


async def test_a_count_tells_the_tokens_before_and_after(scripted: Running) -> None:
    whole, _ = await scripted.post(ask(), COUNT)
    cleared, _ = await scripted.post(ask(CLEAR), COUNT)
    before = int(str(whole["input_tokens"]))
    assert whole["context_management"] == {"original_input_tokens": before}
    assert cleared == {
        "input_tokens": before - SAVED,
        "context_management": {"original_input_tokens": before},
    }


async def test_a_conversation_longer_than_the_window_fits_once_it_is_cleared(
    scripted: Running,
) -> None:
    body = ask(CLEAR, results=("x" * scripted.server.max_context, "ok"))
    message, _ = await scripted.post({**body, "max_tokens": 9})
    as_left, _ = await scripted.post({**ask(results=(CLEARED_RESULT, "ok")), "max_tokens": 9})
    assert input_tokens(message) == input_tokens(as_left)
    body["context_management"] = None
    error, _ = await scripted.post({**body, "max_tokens": 9}, status=400)
    assert "prompt is too long" in str(error["error"])
