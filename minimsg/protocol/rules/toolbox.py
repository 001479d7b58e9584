"""Rules about tools that come and go within the conversation: each must be known by then.

A result may name deferred tools (`tool_reference`), a system turn may add and remove tools
and bring new ones. Source: Messages API reference, mid-conversation tool changes, and the
error codes of the official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.content import (
    DefinedTool,
    NamedTool,
    ToolAdditionBlock,
    ToolReferenceBlock,
    ToolRemovalBlock,
)
from minimsg.protocol.rules.tools import drops_foreign, name_of
from minimsg.protocol.turns import blocks_of

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest


def named_tools_are_known(request: PromptRequest, dialect: Dialect) -> None:
    known: dict[str, str] = {name: tool.type for tool in request.tools if (name := name_of(tool))}
    kinds = (ToolReferenceBlock, ToolAdditionBlock, ToolRemovalBlock)
    for path, block in blocks_of(request.messages, *kinds, inside=True):
        if isinstance(block, ToolReferenceBlock):
            _refuse_unknown(path, block.tool_name, known)
        else:
            _look_at_change(f"{path}.{block.type}.tool", block, known, dialect)


def _look_at_change(
    path: str,
    block: ToolAdditionBlock | ToolRemovalBlock,
    known: dict[str, str],
    dialect: Dialect,
) -> None:
    tool = block.tool
    if isinstance(tool, DefinedTool):
        _define(path, tool, known)
    elif isinstance(tool, NamedTool):
        _refuse_unknown(path, tool.name, known)
    elif not drops_foreign(dialect):  # no MCP server is known here
        _refuse_unknown(path, tool.server_name, {})


def _define(path: str, tool: DefinedTool, known: dict[str, str]) -> None:
    name, kind = tool.definition.name, tool.definition.type
    if known.get(name, kind) != kind:
        raise InvalidRequest(
            path,
            f"the name '{name}' is already used by a tool of type '{known[name]}'",
            error_code="tool_name_conflict",
        )
    known[name] = kind
    if len(known) > LIMITS.tools:
        raise InvalidRequest(
            path,
            f"{len(known)} tools exceed the limit of {LIMITS.tools}",
            error_code="available_tools_limit_exceeded",
        )


def _refuse_unknown(path: str, name: str, known: dict[str, str]) -> None:
    if name not in known:
        raise InvalidRequest(
            path,
            f"Tool reference '{name}' not found in available tools",
            error_code="tool_reference_unresolved",
        )
