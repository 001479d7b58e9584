"""Blocks of a conversation that began on another server, as far as a model can read them.

The hosted API runs tools of its own (search, fetch, code, MCP) and leaves their calls and
results in the assistant's turns. They are text here, since nobody here can run them:

    <server_tool_use>             <web_search_tool_result>     <code_execution_tool_result>
    <name>web_search</name>       TITLE                        {"stdout": ...}
    <input>{...}</input>          URL                          </code_execution_tool_result>
    </server_tool_use>            </web_search_tool_result>

What is encrypted, and what only a server reads (a fallback, a listing of an MCP server's
tools, redacted thinking), gives None and is listed as left out. Next: `documents.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from minimsg.protocol.content import ContentBlock
from minimsg.protocol.server_blocks import (
    McpToolResultBlock,
    McpToolUseBlock,
    OtherResultBlock,
    ServerToolUseBlock,
    WebFetchError,
    WebFetchResultBlock,
    WebSearchError,
    WebSearchResultBlock,
)


def foreign_text(block: ContentBlock) -> str | None:
    """What a model can read of `block`, or None."""
    match block:
        case ServerToolUseBlock():
            return _call(block.type, block.name, block.input)
        case McpToolUseBlock():
            return _call(block.type, f"{block.server_name}/{block.name}", block.input)
        case WebSearchResultBlock():
            return tagged(block.type, _found(block))
        case WebFetchResultBlock():
            return tagged(block.type, _fetched(block))
        case McpToolResultBlock():
            return tagged(block.type, _mcp_result(block))
        case OtherResultBlock():
            if any("encrypted" in key for key in block.content):
                return None
            return tagged(block.type, _json(block.content))
    return None


def _call(tag: str, name: str, input: Mapping[str, JsonValue]) -> str:
    return tagged(tag, f"<name>{name}</name>\n<input>{_json(input)}</input>")


def _found(block: WebSearchResultBlock) -> str:
    if isinstance(block.content, WebSearchError):
        return f"Error: {block.content.error_code}"
    return "\n".join(f"{page.title}\n{page.url}" for page in block.content)


def _fetched(block: WebFetchResultBlock) -> str:
    """The address, and the page if it came as text."""
    if isinstance(block.content, WebFetchError):
        return f"Error: {block.content.error_code}"
    source = block.content.content.get("source")
    is_text = isinstance(source, dict) and source.get("type") == "text"
    page = source.get("data") if is_text and isinstance(source, dict) else None
    return f"{block.content.url}\n{page}" if isinstance(page, str) else block.content.url


def _mcp_result(block: McpToolResultBlock) -> str:
    text = block.content if isinstance(block.content, str) else _mcp_text(block.content or [])
    return f"Error: {text}" if block.is_error else text


def _mcp_text(blocks: list[dict[str, JsonValue]]) -> str:
    return "\n".join(
        text if isinstance(text := block.get("text"), str) else _json(block) for block in blocks
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def tagged(tag: str, text: str) -> str:
    """`text` between lines that name it."""
    return f"<{tag}>\n{text}\n</{tag}>"
