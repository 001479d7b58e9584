"""Requests of which a part is not read: it is dropped in silence, and the prompt is shorter."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.mutant import Asked, mutants
from minimsg.misbehave.turns import map_blocks, map_turns

KEPT_TURNS: Final = 20


def first_system_block_only(asked: Asked) -> None:
    """Of a system prompt in blocks only the first is read."""
    found = asked.json
    if isinstance(found.get("system"), list):
        asked.put(found | {"system": found["system"][:1]})


def old_turns_dropped(asked: Asked) -> None:
    """Only the last twenty turns are read."""
    map_turns(asked, lambda turns: turns[-KEPT_TURNS:])


def results_in_blocks_dropped(asked: Asked) -> None:
    """A result that is a list of blocks is not read."""

    def emptied(block: Any) -> Any:
        is_listed = block.get("type") == "tool_result" and isinstance(block.get("content"), list)
        return block | {"content": ""} if is_listed else block

    map_blocks(asked, emptied)


def first_result_block_only(asked: Asked) -> None:
    """Of a result in blocks only the first is read."""

    def shortened(block: Any) -> Any:
        is_listed = block.get("type") == "tool_result" and isinstance(block.get("content"), list)
        return block | {"content": block["content"][:1]} if is_listed else block

    map_blocks(asked, shortened)


def words_before_a_call_dropped(asked: Asked) -> None:
    """Words of the assistant beside a call are not read."""
    _keep_only(asked, "tool_use")


def words_after_a_result_dropped(asked: Asked) -> None:
    """Words of the user beside a result are not read."""
    _keep_only(asked, "tool_result")


def _keep_only(asked: Asked, kind: str) -> None:
    """In turns that have a block of one kind, leave out the texts."""

    def turn(each: Any) -> Any:
        content = each.get("content") if isinstance(each, dict) else None
        blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
        if not any(block.get("type") == kind for block in blocks):
            return each
        return each | {"content": [block for block in blocks if block.get("type") != "text"]}

    map_turns(asked, lambda turns: [turn(each) for each in turns])


MUTANTS: Final = mutants(
    "request",
    {
        first_system_block_only: "turns.read*",
        old_turns_dropped: "turns.read*",
        results_in_blocks_dropped: "tools.read*",
        first_result_block_only: "tools.read*",
        words_before_a_call_dropped: "tools.read*",
        words_after_a_result_dropped: "tools.read*",
    },
)
