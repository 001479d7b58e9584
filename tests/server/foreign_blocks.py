"""What the hosted API's own tools leave in an assistant's turn: only data.

Each run of blocks may stand in one turn; their ids are different.
"""

from __future__ import annotations

from pydantic import JsonValue

from .running import Json

OPAQUE = "b3BhcXVl"


def pair(id: str, name: str, result: str, content: JsonValue) -> list[JsonValue]:
    """A call of a server tool and its result."""
    call: Json = {"type": "server_tool_use", "id": id, "name": name, "input": {"query": "x"}}
    return [call, {"type": result, "tool_use_id": id, "content": content}]


PAGE: Json = {
    "type": "web_search_result",
    "url": "https://example.com/",
    "title": "Cats",
    "encrypted_content": OPAQUE,
}
FETCHED: Json = {
    "type": "web_fetch_result",
    "url": "https://example.com/",
    "content": {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "Cats sleep."},
    },
}
PRINTED: Json = {
    "type": "code_execution_result",
    "stdout": "3\n",
    "stderr": "",
    "return_code": 0,
    "content": [],
}
HIDDEN: Json = {
    "type": "encrypted_code_execution_result",
    "encrypted_stdout": OPAQUE,
    "stderr": "",
    "return_code": 0,
    "content": [],
}
FAILED: Json = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
ADVICE: Json = {"type": "advisor_result", "text": "Ask the user."}
FOREIGN: list[list[JsonValue]] = [
    [],
    pair("srvtoolu_1", "web_search", "web_search_tool_result", [PAGE]),
    pair("srvtoolu_2", "web_search", "web_search_tool_result", FAILED),
    pair("srvtoolu_3", "web_fetch", "web_fetch_tool_result", FETCHED),
    pair("srvtoolu_4", "code_execution", "code_execution_tool_result", PRINTED),
    pair("srvtoolu_5", "code_execution", "code_execution_tool_result", HIDDEN),
    pair("srvtoolu_6", "advisor", "advisor_tool_result", ADVICE),
    [
        {
            "type": "mcp_tool_use",
            "id": "mcptoolu_1",
            "name": "echo",
            "server_name": "example",
            "input": {"text": "hello"},
        },
        {
            "type": "mcp_tool_result",
            "tool_use_id": "mcptoolu_1",
            "is_error": True,
            "content": [{"type": "text", "text": "hello"}],
        },
    ],
    [{"type": "mcp_tool_listing", "mcp_server_name": "example", "tools": []}],
    [{"type": "fallback", "from": {"model": "one"}, "to": {"model": "other"}}],
]
