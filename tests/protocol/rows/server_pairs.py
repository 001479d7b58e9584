"""Rows: calls that the hosted API answers itself, and their results."""

from __future__ import annotations

from typing import Final

from .row import (
    HI,
    OK,
    Json,
    Row,
    assistant,
    call,
    result,
    search_hits,
    server_call,
    talk,
    text,
    user,
)


def unexpected(path: str, id: str) -> str:
    return (
        f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message."
    )


PENDING: Final = (
    "`web_search` tool use with id `srvtoolu_1` was found without a corresponding "
    "`web_search_tool_result` block"
)

MCP: Final[Json] = {
    "type": "mcp_tool_use",
    "id": "mcptoolu_1",
    "name": "n",
    "server_name": "s",
    "input": {},
}

MCP_RESULT: Final[Json] = {
    "type": "mcp_tool_result",
    "tool_use_id": "mcptoolu_1",
    "content": "x",
}

MCP_BETA: Final = ("mcp-client-2025-11-20",)

ROWS: Final = (
    Row(
        "a server's call and its result",
        talk(HI, assistant(server_call(), search_hits(), text()), HI),
        OK,
    ),
    Row("a server's call in a paused turn", talk(HI, assistant(text(), server_call())), OK),
    Row(
        "a server's call that goes on in the next message",
        talk(HI, assistant(server_call()), assistant(search_hits(), text()), HI),
        OK,
    ),
    Row(
        "a server's call that waits for the client's",
        talk(HI, assistant(server_call(), call()), user(result())),
        OK,
    ),
    Row(
        "and is answered after it",
        talk(
            HI,
            assistant(server_call(), call()),
            user(result()),
            assistant(search_hits(), text()),
            HI,
        ),
        OK,
    ),
    Row(
        "a server's call without a result",
        talk(HI, assistant(server_call(), text()), HI),
        f"messages.2: {PENDING}",
    ),
    Row(
        "a client's results are all that may come between",
        talk(HI, assistant(server_call(), call()), user(result(), text())),
        f"messages.2: {PENDING}",
    ),
    Row(
        "a server's result of nothing",
        talk(HI, assistant(search_hits(), text()), HI),
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: "
        "srvtoolu_1. Each `web_search_tool_result` block must have a corresponding "
        "`server_tool_use` block before it.",
    ),
    Row(
        "the id of a server's call",
        talk(HI, assistant(server_call("t1"))),
        "messages.1.content.0.server_tool_use.id: "
        "String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
    ),
    Row(
        "the name of a server's call",
        talk(HI, assistant(server_call(name="google"))),
        "messages.1.content.0.server_tool_use.name: Input should be 'web_search', 'web_fetch', "
        "'code_execution', 'bash_code_execution', 'text_editor_code_execution', "
        "'tool_search_tool_regex', 'tool_search_tool_bm25' or 'advisor'",
    ),
    Row(
        "a call by MCP and its result",
        talk(HI, assistant(MCP, MCP_RESULT, text()), HI),
        OK,
        betas=MCP_BETA,
    ),
    Row(
        "a call by MCP without a result",
        talk(HI, assistant(MCP, text()), HI),
        "messages.2: `n` tool use with id `mcptoolu_1` was found without a corresponding "
        "`mcp_tool_result` block",
        betas=MCP_BETA,
    ),
    Row(
        "an MCP result of nothing",
        talk(HI, assistant(MCP_RESULT, text()), HI),
        "messages.1.content.0: unexpected `tool_use_id` found in `mcp_tool_result` blocks: "
        "mcptoolu_1. Each `mcp_tool_result` block must have a corresponding `mcp_tool_use` block "
        "before it.",
        betas=MCP_BETA,
    ),
)
