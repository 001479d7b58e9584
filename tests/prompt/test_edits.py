"""What `context_management` takes out of a conversation, counted in characters."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue, TypeAdapter

from minimsg.prompt.edits import CLEARED_RESULT, Edited, edit_turns
from minimsg.protocol.content import ContentBlock
from minimsg.protocol.options import ContextManagement
from minimsg.protocol.request import InputMessage
from minimsg.protocol.turns import Turn, turns_of

BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
LONG = "A long result of a tool, longer by far than what takes its place."


def size(turns: Sequence[Turn]) -> int:
    """A count that is easily checked by hand: characters of JSON."""
    blocks = [placed.block for turn in turns for placed in turn.blocks]
    return sum(len(block.model_dump_json(exclude_none=True)) for block in blocks)


def edited(messages: list[dict[str, JsonValue]], *edits: dict[str, JsonValue]) -> Edited:
    management = ContextManagement.model_validate({"edits": list(edits)})
    turns = turns_of([InputMessage.model_validate(message) for message in messages])
    return edit_turns(turns, management.edits, size)


def shown(turns: Sequence[Turn]) -> list[tuple[str, list[str]]]:
    """Role and, of each block, what there is to read."""
    return [(turn.role, [_shown(placed.block) for placed in turn.blocks]) for turn in turns]


def _shown(block: ContentBlock) -> str:
    data = block.model_dump()
    if block.type == "tool_result":
        return "".join(part["text"] for part in data["content"])
    return str(data.get("text") or data.get("thinking") or data.get("input"))


def results(turns: Sequence[Turn]) -> list[str]:
    blocks = [placed.block for turn in turns for placed in turn.blocks]
    return [_shown(block) for block in blocks if block.type == "tool_result"]


def inputs(turns: Sequence[Turn]) -> list[str]:
    blocks = [placed.block for turn in turns for placed in turn.blocks]
    return [_shown(block) for block in blocks if block.type == "tool_use"]


def tool_loop(*tools: str, result: str = LONG) -> list[dict[str, JsonValue]]:
    """A user's question, and a call and its result for each of `tools`."""
    messages: list[dict[str, JsonValue]] = [{"role": "user", "content": "Go."}]
    for number, tool in enumerate(tools):
        call: JsonValue = {
            "type": "tool_use",
            "id": f"use_{number}",
            "name": tool,
            "input": {"number": number},
        }
        answer: JsonValue = {
            "type": "tool_result",
            "tool_use_id": f"use_{number}",
            "content": f"{number}: {result}",
        }
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answer]},
        ]
    return messages


def clear_tools(**fields: JsonValue) -> dict[str, JsonValue]:
    always: JsonValue = {"type": "tool_uses", "value": 0}
    return {"type": "clear_tool_uses_20250919", "trigger": always, **fields}


def clear_thinking(**fields: JsonValue) -> dict[str, JsonValue]:
    return {"type": "clear_thinking_20251015", **fields}


def tokens(value: int) -> JsonValue:
    return {"type": "input_tokens", "value": value}


def uses(value: int) -> JsonValue:
    return {"type": "tool_uses", "value": value}


def thought(text: str) -> JsonValue:
    return {"type": "thinking", "thinking": text, "signature": "s"}


def said(text: str) -> JsonValue:
    return {"type": "text", "text": text}


def test_the_last_three_results_stay_and_older_ones_become_a_placeholder() -> None:
    after = edited(tool_loop("a", "a", "a", "a", "a"), clear_tools())
    assert results(after.turns) == [CLEARED_RESULT] * 2 + [f"{n}: {LONG}" for n in (2, 3, 4)]
    assert inputs(after.turns) == [f"{{'number': {n}}}" for n in range(5)]


def test_what_was_cleared_is_told_in_tokens_and_in_tool_uses() -> None:
    after = edited(tool_loop("a", "a", "a", "a", "a"), clear_tools())
    saved = 2 * (len(f"0: {LONG}") - len(CLEARED_RESULT))
    assert after.applied == [
        {
            "type": "clear_tool_uses_20250919",
            "cleared_input_tokens": saved,
            "cleared_tool_uses": 2,
        }
    ]
    assert after.original_input_tokens == size(after.turns) + saved


def test_every_result_goes_if_none_is_to_be_kept() -> None:
    after = edited(tool_loop("a", "a"), clear_tools(keep=uses(0)))
    assert results(after.turns) == [CLEARED_RESULT] * 2


def test_nothing_is_cleared_below_a_hundred_thousand_tokens_unless_asked() -> None:
    for result, is_due in (("x" * 19_500, False), ("x" * 20_000, True)):
        after = edited(tool_loop(*"aaaaa", result=result), {"type": "clear_tool_uses_20250919"})
        assert bool(after.applied) is is_due


def test_a_trigger_is_a_number_that_must_be_passed() -> None:
    messages = tool_loop("a", "a", "a", "a")
    total = size(turns_of([InputMessage.model_validate(message) for message in messages]))
    for trigger, is_due in ((uses(4), False), (uses(3), True)):
        assert bool(edited(messages, clear_tools(trigger=trigger)).applied) is is_due
    for trigger, is_due in ((tokens(total), False), (tokens(total - 1), True)):
        assert bool(edited(messages, clear_tools(trigger=trigger)).applied) is is_due


def test_tools_that_are_excluded_keep_their_results() -> None:
    after = edited(tool_loop("a", "b", "a"), clear_tools(keep=uses(1), exclude_tools=["b"]))
    assert results(after.turns) == [CLEARED_RESULT, f"1: {LONG}", f"2: {LONG}"]


def test_inputs_are_cleared_of_all_tools_or_of_those_named() -> None:
    messages = tool_loop("a", "b", "a")
    every = edited(messages, clear_tools(keep=uses(1), clear_tool_inputs=True))
    assert inputs(every.turns) == ["{}", "{}", "{'number': 2}"]
    named = edited(messages, clear_tools(keep=uses(1), clear_tool_inputs=["b"]))
    assert inputs(named.turns) == ["{'number': 0}", "{}", "{'number': 2}"]
    assert results(named.turns) == [CLEARED_RESULT, CLEARED_RESULT, f"2: {LONG}"]


def test_an_edit_that_would_clear_too_little_is_not_made() -> None:
    messages = tool_loop("a", "a")
    saved = len(f"0: {LONG}") - len(CLEARED_RESULT)
    enough = edited(messages, clear_tools(keep=uses(1), clear_at_least=tokens(saved)))
    assert [edit["cleared_input_tokens"] for edit in enough.applied] == [saved]
    short = edited(messages, clear_tools(keep=uses(1), clear_at_least=tokens(saved + 1)))
    assert short.applied == []
    assert results(short.turns) == [f"0: {LONG}", f"1: {LONG}"]


def test_results_shorter_than_the_placeholder_stay() -> None:
    for at_least in (tokens(0), tokens(1)):
        edit = clear_tools(keep=uses(0), clear_at_least=at_least)
        after = edited(tool_loop("a", result="ok"), edit)
        assert after.applied == []
        assert results(after.turns) == ["0: ok"]


def test_an_empty_result_has_nothing_to_clear() -> None:
    messages = tool_loop("a", "a")
    messages[2]["content"] = [{"type": "tool_result", "tool_use_id": "use_0"}]
    after = edited(messages, clear_tools(keep=uses(0)))
    assert [edit.get("cleared_tool_uses") for edit in after.applied] == [1]
    assert results(after.turns) == ["", CLEARED_RESULT]


def test_the_prompt_is_counted_only_if_something_could_be_cleared() -> None:
    def count(turns: Sequence[Turn]) -> int:
        raise AssertionError("counted")

    turns = turns_of([InputMessage.model_validate(message) for message in tool_loop("a", "a")])
    edits = ContextManagement.model_validate({"edits": [{"type": "clear_tool_uses_20250919"}]})
    after = edit_turns(turns, edits.edits, count)
    assert (after.turns, after.applied, after.original_input_tokens) == (turns, [], None)


CONVERSATION: list[dict[str, JsonValue]] = [
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": [thought("first"), said("One.")]},
    {"role": "user", "content": "Two?"},
    {"role": "assistant", "content": [said("Two.")]},
    {"role": "user", "content": "Three?"},
    {"role": "assistant", "content": [thought("third"), said("Three.")]},
    {"role": "user", "content": "Four?"},
]


def test_thinking_stays_in_the_last_turn_that_thinks() -> None:
    after = edited(CONVERSATION, clear_thinking())
    said_by_assistant = [texts for role, texts in shown(after.turns) if role == "assistant"]
    assert said_by_assistant == [["One."], ["Two."], ["third", "Three."]]
    assert after.applied == [
        {
            "type": "clear_thinking_20251015",
            "cleared_input_tokens": len('{"type":"thinking","thinking":"first","signature":"s"}'),
            "cleared_thinking_turns": 1,
        }
    ]


def test_thinking_stays_where_enough_turns_or_all_are_kept() -> None:
    enough: list[JsonValue] = [{"type": "thinking_turns", "value": 2}, {"type": "all"}, "all"]
    for keep in enough:
        after = edited(CONVERSATION, clear_thinking(keep=keep))
        assert after.applied == []
        assert after.original_input_tokens is None


def test_a_tool_loop_is_one_turn_of_thinking() -> None:
    loop = tool_loop("a", "a")
    for number, place in ((1, 1), (2, 3)):
        content = loop[place]["content"]
        assert isinstance(content, list)
        content.insert(0, thought(f"step {number}"))
    messages = [*CONVERSATION[:6], *loop]
    after = edited(messages, clear_thinking())
    said_by_assistant = [texts for role, texts in shown(after.turns) if role == "assistant"]
    assert said_by_assistant[2:] == [
        ["Three."],
        ["step 1", "{'number': 0}"],
        ["step 2", "{'number': 1}"],
    ]
    assert [edit.get("cleared_thinking_turns") for edit in after.applied] == [2]


def test_a_turn_of_nothing_but_thinking_goes_and_its_neighbours_become_one() -> None:
    messages: list[dict[str, JsonValue]] = [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": [thought("only this")]},
        *CONVERSATION[4:],
    ]
    after = edited(messages, clear_thinking())
    assert shown(after.turns) == [
        ("user", ["One?", "Three?"]),
        ("assistant", ["third", "Three."]),
        ("user", ["Four?"]),
    ]
    assert [turn.index for turn in after.turns] == [2, 3, 4]
    assert [placed.path for placed in after.turns[0].blocks] == [
        "messages.0.content.0",
        "messages.2.content.0",
    ]


def test_edits_are_made_one_after_the_other() -> None:
    messages = [*CONVERSATION[:6], *tool_loop("a", "a", "a", "a")]
    after = edited(messages, clear_thinking(), clear_tools(keep=uses(3)))
    assert [edit["type"] for edit in after.applied] == [
        "clear_thinking_20251015",
        "clear_tool_uses_20250919",
    ]
    total = sum(edit["cleared_input_tokens"] for edit in after.applied)
    assert after.original_input_tokens == size(after.turns) + total
