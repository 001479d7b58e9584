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

from minimsg.protocol.content import ContentBlock, TextSource
from minimsg.protocol.server_blocks import (
    McpToolResultBlock,
    McpToolUseBlock,
    ServerResult,
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
    return _other_result(block) if isinstance(block, ServerResult) else None


def _other_result(block: ServerResult) -> str | None:
    content = block.model_dump(mode="json", include={"content"}, exclude_none=True)["content"]
    is_encrypted = any("encrypted" in key for key in content)
    return None if is_encrypted else tagged(block.type, _json(content))


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
    url, source = block.content.url, block.content.content.source
    return f"{url}\n{source.data}" if isinstance(source, TextSource) else url


def _mcp_result(block: McpToolResultBlock) -> str:
    text = "\n".join(part.text for part in block.content)
    return f"Error: {text}" if block.is_error else text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def tagged(tag: str, text: str) -> str:
    """`text` between lines that name it."""
    return f"<{tag}>\n{text}\n</{tag}>"
