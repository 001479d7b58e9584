"""Rules about calls and their results: each call of a tool is answered, once, in the next turn.

    assistant [tool_use a, tool_use b]   user [tool_result b, tool_result a, text]

Results may come in any order, before anything else the user says. Profile `compat` also
takes text between them, and looks past system turns. A call that the hosted API answers
itself has its result in the same turn, unless the turn was paused there.
Source: Messages API reference, tool use; public error reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import ToolResultBlock, ToolUseBlock
from minimsg.protocol.server_blocks import (
    McpToolUseBlock,
    ServerResult,
    ServerToolUseBlock,
    ServerUse,
)
from minimsg.protocol.turns import blocks_of, turns_of

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest
    from minimsg.protocol.turns import Placed, Turn


CLIENT_KINDS: Final = frozenset({ToolUseBlock, ToolResultBlock})
SERVER_KINDS: Final = frozenset({*get_args(ServerUse), *get_args(ServerResult)})


def ids_are_unique(request: PromptRequest, dialect: Dialect) -> None:
    seen: set[str] = set()
    for path, block in blocks_of(
        request.messages, ToolUseBlock, ServerToolUseBlock, McpToolUseBlock
    ):
        if block.id in seen:
            raise InvalidRequest(path, "`tool_use` ids must be unique")
        seen.add(block.id)


def calls_and_results_match(request: PromptRequest, dialect: Dialect) -> None:
    if not _has(request, CLIENT_KINDS):
        return
    previous: Turn | None = None
    for turn in [*turns_of(request.messages, skip="system"), None]:
        calls = _calls(previous)
        if turn is not None:
            _results_have_calls(turn, calls)
        _calls_have_results(calls, turn, dialect)
        previous = turn


def _has(request: PromptRequest, kinds: frozenset[type]) -> bool:
    """Whether there is anything to match."""
    return any(type(block) in kinds for each in request.messages for block in each.content)


def _calls(turn: Turn | None) -> dict[str, Placed]:
    """The client's tools that the assistant called in `turn`, by id."""
    placed = turn.blocks if turn is not None and turn.role == "assistant" else []
    return {each.block.id: each for each in placed if isinstance(each.block, ToolUseBlock)}


def _results_have_calls(turn: Turn, calls: dict[str, Placed]) -> None:
    answered: set[str] = set()
    for placed in turn.blocks:
        if not isinstance(placed.block, ToolResultBlock):
            continue
        id = placed.block.tool_use_id
        if id not in calls:
            raise InvalidRequest(
                placed.path,
                f"unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message.",
            )
        if id in answered:
            raise InvalidRequest(
                placed.path,
                "each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {id}",
            )
        answered.add(id)


def _calls_have_results(calls: dict[str, Placed], turn: Turn | None, dialect: Dialect) -> None:
    answered = _answered(turn, dialect) if turn is not None else set()
    missing = [id for id in calls if id not in answered]
    if not missing:
        return
    message = calls[missing[0]].path.partition(".content.")[0]
    raise InvalidRequest(
        message,
        "`tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message.",
    )


def _answered(turn: Turn, dialect: Dialect) -> set[str]:
    """The ids of the results that stand where they count: nothing is said before them."""
    answered: set[str] = set()
    for placed in turn.blocks:
        if isinstance(placed.block, ToolResultBlock):
            answered.add(placed.block.tool_use_id)
        elif dialect.is_strict or not answered:
            break
    return answered


def server_calls_and_results_match(request: PromptRequest, dialect: Dialect) -> None:
    """A paused turn is sent back as the last one, or before results of client tools only."""
    if not _has(request, SERVER_KINDS):
        return
    pending: dict[str, ServerUse] = {}
    for turn in turns_of(request.messages, skip="system"):
        for placed in turn.blocks:
            block = placed.block
            if isinstance(block, ServerUse):
                pending[block.id] = block
            elif isinstance(block, ServerResult):
                _take(pending, placed.path, block)
            elif turn.role == "user" and pending and not isinstance(block, ToolResultBlock):
                _refuse_pending(f"messages.{turn.index}", next(iter(pending.values())))


def _take(pending: dict[str, ServerUse], path: str, block: ServerResult) -> None:
    if pending.pop(block.tool_use_id, None) is None:
        kind = "mcp_tool_use" if block.type == "mcp_tool_result" else "server_tool_use"
        raise InvalidRequest(
            path,
            f"unexpected `tool_use_id` found in `{block.type}` blocks: {block.tool_use_id}. "
            f"Each `{block.type}` block must have a corresponding `{kind}` block before it.",
        )


def _refuse_pending(path: str, block: ServerUse) -> None:
    if isinstance(block, McpToolUseBlock):
        result = "mcp_tool_result"
    elif block.name.startswith("tool_search"):
        result = "tool_search_tool_result"
    else:
        result = f"{block.name}_tool_result"
    raise InvalidRequest(
        path,
        f"`{block.name}` tool use with id `{block.id}` was found without a corresponding "
        f"`{result}` block",
    )
