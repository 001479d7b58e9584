"""Rows: what a request may hold under its beta only. Compat asks for none."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, HI, OK, Json, Row, assistant, system, talk, text

BLOCKS: Final = (
    "'text', 'image', 'document', 'search_result', 'thinking', 'redacted_thinking', 'tool_use', "
    "'tool_result', 'container_upload', 'server_tool_use', 'web_search_tool_result', "
    "'web_fetch_tool_result', 'code_execution_tool_result', 'bash_code_execution_tool_result', "
    "'text_editor_code_execution_tool_result', 'tool_search_tool_result'"
)
TOOLS: Final = (
    "'custom', 'bash_20250124', 'text_editor_20250124', 'text_editor_20250429', "
    "'text_editor_20250728', 'memory_20250818', 'computer_toolset_20260801', "
    "'browser_toolset_20260801', 'web_search_20250305', 'web_search_20260209', "
    "'web_search_20260318', 'web_fetch_20250910', 'web_fetch_20260209', 'web_fetch_20260309', "
    "'web_fetch_20260318', 'code_execution_20250522', 'code_execution_20250825', "
    "'code_execution_20260120', 'code_execution_20260521', 'tool_search_tool_regex', "
    "'tool_search_tool_regex_20251119', 'tool_search_tool_bm25', "
    "'tool_search_tool_bm25_20251119'"
)
SCREEN: Final[Json] = {"name": "computer", "display_width_px": 1, "display_height_px": 1}
MCP_CALL: Final[Json] = {
    "type": "mcp_tool_use",
    "id": "mcptoolu_1",
    "name": "n",
    "server_name": "s",
    "input": {},
}


def no_tag(path: str, kind: str, known: str) -> str:
    return (
        f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
        f"{known}"
    )


def tool_row(meaning: str, tool: Json, *, compat: str = OK) -> Row:
    kind = str(tool["type"])
    return Row(meaning, {"tools": [tool]}, compat=compat, strict=no_tag("tools.0", kind, TOOLS))


def hosted(kind: str) -> str:
    return f"tools.0: tools of type '{kind}' are known to the hosted API only; leave it out"


def block_row(meaning: str, *blocks: Json, number: int = 0) -> Row:
    """The block of this number is the one that needs a beta."""
    path, kind = f"messages.1.content.{number}", str(blocks[number]["type"])
    fields = talk(HI, assistant(*blocks, text()), HI)
    return Row(meaning, fields, compat=OK, strict=no_tag(path, kind, BLOCKS))


ROWS: Final = (
    Row(
        "who pays, without its beta",
        {"billing_policy": {"type": "billing_policy"}},
        compat=OK,
        strict=f"billing_policy: {EXTRA}",
        unheeded=("billing_policy",),
    ),
    Row(
        "a credit without its beta",
        {"fallback_credit_token": {"token": "t", "mode": "strict"}},
        compat=OK,
        strict=f"fallback_credit_token: {EXTRA}",
        unheeded=("fallback_credit_token",),
    ),
    Row(
        "a summary now, without its beta",
        {"compaction": {"type": "summarize"}},
        compat="compaction: compaction is not supported for this model",
        strict=f"compaction: {EXTRA}",
        count=OK,
    ),
    Row(
        "a gate looks at the name alone",
        {"context_management": "x"},
        compat="context_management: Input should be a valid dictionary",
        strict=f"context_management: {EXTRA}",
    ),
    tool_row("an older shell", {"type": "bash_20241022", "name": "bash"}),
    tool_row("an older editor", {"type": "text_editor_20241022", "name": "str_replace_editor"}),
    tool_row("the first screen", {"type": "computer_20241022", **SCREEN}),
    tool_row("the second screen", {"type": "computer_20250124", **SCREEN}),
    tool_row("the third screen", {"type": "computer_20251124", **SCREEN, "enable_zoom": True}),
    tool_row(
        "an advisor without its beta",
        {"type": "advisor_20260301", "name": "advisor", "model": "m"},
        compat=hosted("advisor_20260301"),
    ),
    tool_row(
        "tools of an MCP server without their beta",
        {"type": "mcp_toolset", "mcp_server_name": "s"},
        compat=hosted("mcp_toolset"),
    ),
    block_row("a summary without its beta", {"type": "compaction", "content": "s"}),
    block_row(
        "a fallback without its beta",
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
    ),
    block_row(
        "a listing of tools without its beta",
        {"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []},
    ),
    block_row(
        "a call by MCP without its beta",
        MCP_CALL,
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": "x"},
    ),
    Row(
        "a result by MCP without its beta",
        talk(HI, assistant({"type": "mcp_tool_result", "tool_use_id": "m"}, text()), HI),
        compat="messages.1.content.0: unexpected `tool_use_id` found in `mcp_tool_result` blocks: "
        "m. Each `mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it.",
        strict=no_tag("messages.1.content.0", "mcp_tool_result", BLOCKS),
    ),
    block_row(
        "advice without its beta",
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}},
        {
            "type": "advisor_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "advisor_result", "text": "x"},
        },
        number=1,
    ),
    Row(
        "a tool is removed without its beta",
        {
            **talk(
                HI,
                system({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "f"}}),
            ),
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        },
        compat=OK,
        strict=no_tag("messages.1.content.0", "tool_removal", BLOCKS),
    ),
)
