"""Requests whose turns or blocks are dropped, or taken though they are wrong."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.mutant import Asked, mutants
from minimsg.misbehave.requests import COUNT, path


def map_turns(asked: Asked, change: Any) -> None:
    """Change the list of turns, where there is one."""
    found = asked.json
    if isinstance(found.get("messages"), list):
        asked.put(found | {"messages": change(found["messages"])})


def map_blocks(asked: Asked, change: Any) -> None:
    """Change every block of every turn; None drops it."""

    def turn(each: Any) -> Any:
        if not isinstance(each, dict) or not isinstance(each.get("content"), list):
            return each
        blocks = [change(b) if isinstance(b, dict) else b for b in each["content"]]
        return each | {"content": [b for b in blocks if b is not None]}

    map_turns(asked, lambda turns: [turn(each) for each in turns])


def without_blocks(asked: Asked, *kinds: str) -> None:
    map_blocks(asked, lambda block: None if block.get("type") in kinds else block)


def count_of_the_last_turn(asked: Asked) -> None:
    """count_tokens counts the last turn only."""
    if path(asked) == COUNT:
        map_turns(asked, lambda turns: [t for t in turns[-1:] if t.get("role") == "user"] or turns)


def history_dropped(asked: Asked) -> None:
    """Only the last turn is read."""
    turns = asked.json.get("messages")
    if isinstance(turns, list) and len(turns) > 1 and '"tool' not in str(asked.body):
        map_turns(asked, lambda turns: turns[-1:])


def documents_dropped(asked: Asked) -> None:
    """Documents and search results are dropped in silence."""
    without_blocks(asked, "document", "search_result")


def results_dropped(asked: Asked) -> None:
    """What tools said is not read."""
    map_blocks(asked, lambda b: b | {"content": ""} if b.get("type") == "tool_result" else b)


def inputs_dropped(asked: Asked) -> None:
    """What tools were asked is not read."""
    map_blocks(asked, lambda b: b | {"input": {}} if b.get("type") == "tool_use" else b)


def unknown_blocks_taken(asked: Asked) -> None:
    """Blocks of an unknown type are dropped."""
    without_blocks(asked, "hologram")


def pairs_unchecked(asked: Asked) -> None:
    """Calls and results need not pair."""
    if b"tool_use" in asked.body or b"tool_result" in asked.body:
        without_blocks(asked, "tool_use", "tool_result")
        filler = {"type": "text", "text": "-"}
        map_turns(asked, lambda turns: [t | {"content": t["content"] or [filler]} for t in turns])


def images_taken(asked: Asked) -> None:
    """Pictures that are none are dropped."""
    without_blocks(asked, "image")
    filler = {"type": "text", "text": "-"}
    map_turns(asked, lambda turns: [t | {"content": t.get("content") or [filler]} for t in turns])


def system_turns_dropped(asked: Asked) -> None:
    """Turns of the system are dropped."""
    map_turns(
        asked,
        lambda turns: [t for t in turns if not isinstance(t, dict) or t.get("role") != "system"],
    )


def roles_unchecked(asked: Asked) -> None:
    """An unknown role is the user's."""

    def turn(each: Any) -> Any:
        is_known = not isinstance(each, dict) or each.get("role") in ("user", "assistant", "system")
        return each if is_known else each | {"role": "user"}

    map_turns(asked, lambda turns: [turn(each) for each in turns])


def no_turns_taken(asked: Asked) -> None:
    """A conversation without turns is answered."""
    map_turns(asked, lambda turns: turns or [{"role": "user", "content": "-"}])


def empty_taken(asked: Asked) -> None:
    """Empty turns are answered."""

    def turn(each: Any) -> Any:
        empty = isinstance(each, dict) and each.get("content") in ("", [])
        return each | {"content": "-"} if empty else each

    map_turns(asked, lambda turns: [turn(each) for each in turns])


MUTANTS: Final = mutants(
    "request",
    {
        count_of_the_last_turn: "count.usage*",
        history_dropped: "[mt]*.*",
        documents_dropped: "blocks.*",
        results_dropped: "tools.result*",
        inputs_dropped: "tools.input*",
        unknown_blocks_taken: "blocks.refused*",
        pairs_unchecked: "tools.pair-refused*",
        images_taken: "blocks.image*",
        system_turns_dropped: "turns.system*",
        roles_unchecked: "turns.refused*",
        no_turns_taken: "turns.refused*",
        empty_taken: "turns.refused*",
    },
)
