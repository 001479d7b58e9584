"""Rows: which tools may be forced, and when."""

from __future__ import annotations

from typing import Final

from .row import OK, Json, Row, tool

NO_FORCE: Final = 'tool_choice: type "tool" and "any" are not supported for this model.'

FORCED: Final = "Thinking may not be enabled when tool_choice forces tool use."

THINK: Final[Json] = {"max_tokens": 2048, "thinking": {"type": "enabled", "budget_tokens": 1024}}

ANY: Final[Json] = {"type": "any"}

NAMED: Final[Json] = {"type": "tool", "name": "f"}

SEARCH: Final[Json] = {"type": "web_search_20250305", "name": "web_search"}
HOSTED: Final = (
    "tools.0: tools of type 'web_search_20250305' are known to the hosted API only; leave it out"
)

ROWS: Final = (
    Row("the model chooses", {"tools": [tool()], "tool_choice": {"type": "auto"}}, OK),
    Row(
        "the model chooses one at most",
        {"tools": [tool()], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        OK,
    ),
    Row("no tool is called", {"tools": [tool()], "tool_choice": {"type": "none"}}, OK),
    Row(
        "a choice of none cannot be parallel",
        {"tools": [tool()], "tool_choice": {"type": "none", "disable_parallel_tool_use": True}},
        compat=OK,
        strict="tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted",
    ),
    Row("some tool is forced", {"tools": [tool()], "tool_choice": ANY}, OK),
    Row("one tool is forced", {"tools": [tool()], "tool_choice": NAMED}, OK),
    Row(
        "a tool that is not there is forced",
        {"tools": [tool()], "tool_choice": {"type": "tool", "name": "g"}},
        "Tool 'g' not found in provided tools",
    ),
    Row(
        "a tool that is left out is forced",
        {"tools": [SEARCH, tool()], "tool_choice": {"type": "tool", "name": "web_search"}},
        compat="Tool 'web_search' not found in provided tools",
        strict=HOSTED,
        drops=True,
    ),
    Row(
        "some tool is forced of those that are left out",
        {"tools": [SEARCH], "tool_choice": ANY},
        compat="tool_choice may only be specified while providing tools.",
        strict=HOSTED,
        drops=True,
    ),
    Row(
        "a choice without tools",
        {"tool_choice": {"type": "auto"}},
        "tool_choice may only be specified while providing tools.",
    ),
    Row(
        "a choice with an empty list",
        {"tools": [], "tool_choice": ANY},
        "tool_choice may only be specified while providing tools.",
    ),
    Row(
        "a model that cannot be forced",
        {"tools": [tool()], "tool_choice": ANY},
        NO_FORCE,
        lacking=("forced-tools",),
    ),
    Row(
        "nor to one tool",
        {"tools": [tool()], "tool_choice": NAMED},
        NO_FORCE,
        lacking=("forced-tools",),
    ),
    Row(
        "forcing is off",
        {"tools": [tool()], "tool_choice": NAMED},
        NO_FORCE,
        without=("forced-tools",),
    ),
    Row("who is forced does not think", {**THINK, "tools": [tool()], "tool_choice": ANY}, FORCED),
    Row("nor if forced to one tool", {**THINK, "tools": [tool()], "tool_choice": NAMED}, FORCED),
)
