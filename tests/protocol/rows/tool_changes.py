"""Rows: tools that the conversation names, adds, removes and brings along."""

from __future__ import annotations

from typing import Final

from .row import HI, OK, Json, Row, after_call, result, schema, system, talk, tool

INVALID: Final = "JSON schema is invalid. It must match JSON Schema draft 2020-12."

CHANGES: Final = ("mid-conversation-tool-changes-2026-07-01",)

INLINE: Final = (*CHANGES, "inline-tools-2026-09-15")

DEFERRED: Final = tool("g", defer_loading=True)


def added(**change: str) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", **change}}


def defined(definition: Json) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}


def unresolved(path: str, name: str) -> str:
    return f"{path}: Tool reference '{name}' not found in available tools"


REFERENCE: Final[Json] = {"type": "tool_reference", "tool_name": "g"}

ROWS: Final = (
    Row(
        "a result names a deferred tool",
        {**after_call(result("t1", REFERENCE)), "tools": [tool(), DEFERRED]},
        OK,
    ),
    Row(
        "a result names an unknown tool",
        after_call(result("t1", REFERENCE)),
        unresolved("messages.2.content.0.tool_result.content.0", "g"),
        error_code="tool_reference_unresolved",
    ),
    Row(
        "a tool is added",
        {**talk(HI, system(added(name="g"))), "tools": [tool(), DEFERRED]},
        compat=OK,
        strict="messages.1.content.0: Input tag 'tool_addition' found using 'type' does not match "
        "any of the expected tags: 'text', 'image', 'document', 'search_result', 'thinking', "
        "'redacted_thinking', 'tool_use', 'tool_result', 'container_upload', 'server_tool_use', "
        "'web_search_tool_result', 'web_fetch_tool_result', 'code_execution_tool_result', "
        "'bash_code_execution_tool_result', 'text_editor_code_execution_tool_result', "
        "'tool_search_tool_result'",
    ),
    Row(
        "a tool is added under its beta",
        {**talk(HI, system(added(name="g"))), "tools": [tool(), DEFERRED]},
        OK,
        betas=CHANGES,
    ),
    Row(
        "an unknown tool is added",
        {**talk(HI, system(added(name="h"))), "tools": [tool()]},
        unresolved("messages.1.content.0.tool_addition.tool", "h"),
        betas=CHANGES,
        error_code="tool_reference_unresolved",
    ),
    Row(
        "an unknown tool is removed",
        talk(HI, system({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "h"}})),
        unresolved("messages.1.content.0.tool_removal.tool", "h"),
        betas=CHANGES,
        error_code="tool_reference_unresolved",
    ),
    Row(
        "a tool of an unknown MCP server is added",
        talk(
            HI,
            system(
                {
                    "type": "tool_addition",
                    "tool": {"type": "mcp_toolset_reference", "server_name": "s"},
                }
            ),
        ),
        unresolved("messages.1.content.0.tool_addition.tool", "s"),
        betas=CHANGES,
        error_code="tool_reference_unresolved",
    ),
    Row(
        "a tool is brought along",
        talk(HI, system(defined(tool("h")), added(name="h"))),
        OK,
        betas=INLINE,
    ),
    Row(
        "a tool is brought along without its beta",
        talk(HI, system(defined(tool("h")))),
        compat=OK,
        strict="messages.1.content.0.tool: Input tag 'tool_definition' found using 'type' does "
        "not match any of the expected tags: 'tool_reference', 'mcp_tool_reference', "
        "'mcp_toolset_reference'",
        betas=CHANGES,
    ),
    Row(
        "a tool that is brought along has a schema",
        talk(HI, system(defined(schema(required=True)))),
        "messages.1.content.0.tool_addition.tool.tool_definition.definition.custom.input_schema: "
        f"{INVALID} See required.",
        betas=INLINE,
    ),
    Row(
        "a name of another kind is taken",
        {
            **talk(HI, system(defined(tool("bash")))),
            "tools": [{"type": "bash_20250124", "name": "bash"}],
        },
        "messages.1.content.0.tool_addition.tool: the name 'bash' is already used by a tool of "
        "type 'bash_20250124'",
        betas=INLINE,
        error_code="tool_name_conflict",
    ),
    Row(
        "a tool is not the user's to add",
        talk({"role": "user", "content": [added(name="g")]}),
        "messages.0.content.0: `tool_addition` blocks can only be in `system` messages",
        betas=CHANGES,
    ),
)
