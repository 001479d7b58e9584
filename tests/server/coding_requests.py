"""Requests in the shape in which coding clients send them, written by us.

For clones without the recordings: what matters of a first turn, of the turns after a
tool was called, and of the side requests. Only data; `recordings.py` sends it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping

from pydantic import JsonValue

from .recordings import Recording
from .running import Json

CACHED: Mapping[str, JsonValue] = {"cache_control": {"type": "ephemeral"}}
HEADERS: tuple[tuple[str, str], ...] = (
    ("Accept", "application/json"),
    ("Authorization", "Bearer x"),
    ("Content-Type", "application/json"),
    ("User-Agent", "a-coding-client/0.0.0"),
    (
        "anthropic-beta",
        "interleaved-thinking-2025-05-14,context-management-2025-06-27,"
        "mid-conversation-tool-changes-2026-07-01,a-name-that-nobody-knows-2026-01-01",
    ),
    ("anthropic-dangerous-direct-browser-access", "true"),
    ("anthropic-version", "2023-06-01"),
    ("x-app", "cli"),
)


def text(words: str, **fields: JsonValue) -> Json:
    """A text block."""
    return {"type": "text", "text": words, **fields}


def tool(name: str, description: str, *arguments: str, **fields: JsonValue) -> Json:
    """A tool whose arguments are strings."""
    schema: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "input_schema": schema, **fields}


def call(id: str, name: str, **arguments: JsonValue) -> Json:
    """A tool_use block."""
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: JsonValue, **fields: JsonValue) -> Json:
    """A tool_result block."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


USER_TURN: Json = {
    "role": "user",
    "content": [text("<reminder>Be brief.</reminder>"), text("What is in notes.txt?")],
}
SYSTEM_TURN: Json = {
    "role": "system",
    "content": [text("# Environment\nThe working directory is empty.", **CACHED)],
    "output_config": {"effort": "medium"},
}
TOOLS: list[JsonValue] = [
    tool("Find", "Loads tools that are not loaded yet.", "query"),
    tool("Read", "Reads a file from the disk. " * 40, "path"),
    tool("Run", "Runs a shell command and returns what it prints.", "command"),
    tool("Placeholder", "Stands for tools that are not loaded yet.", defer_loading=True),
]
BODY: Json = {
    "model": "claude-of-some-kind",
    "messages": [USER_TURN, SYSTEM_TURN],
    "system": [
        text("x-anthropic-billing-header: cc_version=0.0.0.abc; cc_entrypoint=test;"),
        text("You are a coding agent.", **CACHED),
        text("Use the tools. " * 100, **CACHED),
    ],
    "tools": TOOLS,
    "metadata": {"user_id": json.dumps({"device_id": "0" * 64, "session_id": "1"})},
    "max_tokens": 128_000,
    "thinking": {"type": "adaptive", "display": "omitted"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium"},
    "stream": True,
}


def first(name: str, *, remove: tuple[str, ...] = (), **changes: JsonValue) -> Recording:
    """A coding client's first request, with `changes` to its body and without `remove`."""
    body = {**copy.deepcopy(BODY), **changes}
    kept = {key: value for key, value in body.items() if key not in remove}
    return Recording(name, "POST", "/v1/messages?beta=true", HEADERS, kept)


def later(name: str, *turns: list[JsonValue], tools: list[JsonValue] | None = None) -> Recording:
    """The request after `turns`, the contents of assistant and user in turn."""
    roles = ("assistant", "user") * len(turns)
    told: list[JsonValue] = [
        {"role": role, "content": content} for role, content in zip(roles, turns, strict=False)
    ]
    environment = {**SYSTEM_TURN, "content": "# Environment\nThe working directory is empty."}
    return first(name, messages=[USER_TURN, environment, *told], tools=tools or TOOLS)


def count(name: str, *tools: JsonValue) -> Recording:
    """The request that asks what `tools` cost."""
    messages: list[JsonValue] = [{"role": "user", "content": "foo"}]
    body: Json = {"model": BODY["model"], "messages": messages, "tools": list(tools)}
    return Recording(name, "POST", "/v1/messages/count_tokens?beta=true", HEADERS, body)


THOUGHT: Json = {"type": "thinking", "thinking": "I should look.", "signature": "c2lnbmVk"}
REPLIES = [
    first("a first turn"),
    first("without a stream", stream=False, max_tokens=64_000),
    first("thinking with a budget", thinking={"type": "enabled", "budget_tokens": 127_999}),
    first(
        "a system turn without words, which sets the effort",
        messages=[USER_TURN, {**SYSTEM_TURN, "content": []}],
    ),
    first("no betas", remove=("context_management", "thinking")),
    later(
        "results in another order than the calls",
        [THOUGHT, text("Looking."), call("toolu_1", "Read", path="a"), call("toolu_2", "Run")],
        [result("toolu_2", "No such file", is_error=True), result("toolu_1", "1", **CACHED)],
    ),
    later(
        "a tool that a result names",
        [call("toolu_1", "Find", query="fetch")],
        [
            result("toolu_1", [{"type": "tool_reference", "tool_name": "Fetch"}]),
            text("Tool loaded."),
        ],
        tools=[*TOOLS, tool("Fetch", "Fetches a page.", "url", defer_loading=True)],
    ),
]
COUNTS = [count("no tools"), count("one tool", TOOLS[1]), count("all tools", *TOOLS)]
IMAGE: Json = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
PICTURE = later(
    "a picture in a result",
    [call("toolu_1", "Read", path="a.txt"), call("toolu_2", "Read", path="a.png")],
    [result("toolu_1", "1"), result("toolu_2", [IMAGE])],
)
SERVER_TOOL = first(
    "a tool that the hosted API runs",
    remove=("context_management", "thinking"),
    messages=[{"role": "user", "content": "Search the web."}],
    tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    tool_choice={"type": "auto"},
)
