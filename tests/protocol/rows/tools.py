"""Rows: tools, their names, which are deferred, strict, or known to the hosted API only."""

from __future__ import annotations

from typing import Final

from .row import MARK, OK, Json, Row, tool

SEARCH: Final[Json] = {"type": "web_search_20250305", "name": "web_search"}

DEFERRED: Final = tool("g", defer_loading=True)


def hosted(position: int, kind: str) -> str:
    return (
        f"tools.{position}: tools of type '{kind}' are known to the hosted API only; leave it out"
    )


ROWS: Final = (
    # kinds and names
    Row("a tool", {"tools": [tool()]}, OK),
    Row("a tool may say it is custom", {"tools": [tool(type="custom")]}, OK),
    Row("or say null", {"tools": [tool(type=None)]}, OK),
    Row("no tools", {"tools": []}, OK),
    Row("two tools of one name", {"tools": [tool(), tool()]}, "tools: Tool names must be unique."),
    Row(
        "a tool and a fixed one of one name",
        {"tools": [tool("bash"), {"type": "bash_20250124", "name": "bash"}]},
        "tools: Tool names must be unique.",
    ),
    Row(
        "tools that the client runs",
        {
            "tools": [
                {"type": "bash_20250124", "name": "bash"},
                {
                    "type": "text_editor_20250728",
                    "name": "str_replace_based_edit_tool",
                    "max_characters": 1,
                },
                {"type": "memory_20250818", "name": "memory"},
            ]
        },
        OK,
    ),
    Row(
        "a fixed tool has a fixed name",
        {"tools": [{"type": "bash_20250124", "name": "sh"}]},
        "tools.0.bash_20250124.name: Input should be 'bash'",
    ),
    Row(
        "max_characters is one or more",
        {
            "tools": [
                {
                    "type": "text_editor_20250728",
                    "name": "str_replace_based_edit_tool",
                    "max_characters": 0,
                }
            ]
        },
        "tools.0.text_editor_20250728.max_characters: Input should be greater than or equal to 1",
    ),
    Row(
        "an older editor has no max_characters",
        {
            "tools": [
                {
                    "type": "text_editor_20250429",
                    "name": "str_replace_based_edit_tool",
                    "max_characters": 1,
                }
            ]
        },
        compat=OK,
        strict="tools.0.text_editor_20250429.max_characters: Extra inputs are not permitted",
    ),
    Row(
        "a screen under its beta",
        {
            "tools": [
                {
                    "type": "computer_20250124",
                    "name": "computer",
                    "display_width_px": 1,
                    "display_height_px": 1,
                }
            ]
        },
        OK,
        betas=("computer-use-2025-01-24",),
    ),
    Row(
        "a screen has a width",
        {
            "tools": [
                {
                    "type": "computer_20250124",
                    "name": "computer",
                    "display_width_px": 0,
                    "display_height_px": 1,
                }
            ]
        },
        "tools.0.computer_20250124.display_width_px: Input should be greater than or equal to 1",
        betas=("computer-use-2025-01-24",),
    ),
    # deferred, strict, callers
    Row("a deferred tool beside another", {"tools": [tool(), DEFERRED]}, OK),
    Row(
        "deferred tools only",
        {"tools": [DEFERRED]},
        "tools: At least one tool must have defer_loading=false. All tools cannot be deferred.",
    ),
    Row(
        "a deferred tool is not marked",
        {"tools": [tool(), {**DEFERRED, "cache_control": MARK}]},
        "tools.1: Tool 'g' cannot have both defer_loading=true and cache_control set. Tools with "
        "defer_loading cannot use prompt caching.",
    ),
    Row("a strict tool", {"tools": [tool(strict=True)]}, OK),
    Row(
        "a strict tool on a model that promises nothing",
        {"tools": [tool(strict=True)]},
        "tools.0.custom.strict: strict tools are not supported for this model",
        lacking=("strict-tools",),
    ),
    Row(
        "strict tools are off",
        {"tools": [tool(), {"type": "bash_20250124", "name": "bash", "strict": True}]},
        "tools.1.bash_20250124.strict: strict tools are not supported for this model",
        without=("strict-tools",),
    ),
    Row(
        "a tool that is not strict", {"tools": [tool(strict=False)]}, OK, lacking=("strict-tools",)
    ),
    Row("streaming of input as it comes", {"tools": [tool(eager_input_streaming=True)]}, OK),
    Row("callers of a tool", {"tools": [tool(allowed_callers=["direct"])]}, OK),
    Row(
        "callers that are not here",
        {"tools": [tool(allowed_callers=["code_execution_20250825"])]},
        compat=OK,
        strict="tools.0.allowed_callers: no tool here runs code that could call it",
        unheeded=("tools.0.allowed_callers",),
    ),
    Row(
        "callers that are nowhere",
        {"tools": [tool(allowed_callers=["me"])]},
        "tools.0.custom.allowed_callers.0: Input should be 'direct', 'code_execution_20250825', "
        "'code_execution_20260120' or 'code_execution_20260521'",
    ),
    # what only the hosted API has
    Row("a search of the web", {"tools": [SEARCH]}, hosted(0, "web_search_20250305")),
    Row(
        "a fetch of a page",
        {"tools": [tool(), {"type": "web_fetch_20250910", "name": "web_fetch"}]},
        hosted(1, "web_fetch_20250910"),
    ),
    Row(
        "running of code",
        {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
        hosted(0, "code_execution_20250825"),
    ),
    Row(
        "a search of tools",
        {
            "tools": [
                {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
                DEFERRED,
            ]
        },
        hosted(0, "tool_search_tool_bm25_20251119"),
    ),
    Row(
        "a toolset",
        {"tools": [{"type": "browser_toolset_20260801"}]},
        hosted(0, "browser_toolset_20260801"),
    ),
    Row(
        "an advisor",
        {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "m"}]},
        hosted(0, "advisor_20260301"),
        betas=("advisor-tool-2026-03-01",),
    ),
    Row(
        "tools of an MCP server",
        {"tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}]},
        hosted(0, "mcp_toolset"),
        betas=("mcp-client-2025-11-20",),
    ),
    Row(
        "a search of the web that is left out",
        {"tools": [SEARCH], "tool_choice": {"type": "auto"}},
        compat=OK,
        strict=hosted(0, "web_search_20250305"),
        drops=True,
    ),
    Row(
        "a toolset that is left out",
        {"tools": [tool(), {"type": "computer_toolset_20260801"}]},
        compat=OK,
        strict=hosted(1, "computer_toolset_20260801"),
        drops=True,
    ),
    Row(
        "domains are allowed or blocked",
        {"tools": [{**SEARCH, "allowed_domains": ["a"], "blocked_domains": ["b"]}]},
        "tools.0.web_search_20250305: only one of allowed_domains and blocked_domains can be given",
    ),
    Row(
        "a search has no examples",
        {"tools": [{**SEARCH, "input_examples": [{}]}]},
        compat=hosted(0, "web_search_20250305"),
        strict="tools.0.web_search_20250305.input_examples: Extra inputs are not permitted",
    ),
)
