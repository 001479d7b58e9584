"""Blocks of system turns by which the model gets or loses tools within a conversation.

Knows shapes; that a tool which is named must be known by then is in `rules/toolbox.py`,
what the model is told of it in `prompt/tools.py`. Source: Messages API reference,
mid-conversation tool changes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.protocol.tools import DefinableTool
from minimsg.protocol.wire import CacheMark, Name, Wire


class ToolReferenceBlock(CacheMark):
    """The name of a deferred tool, which from here on is known to the model."""

    type: Literal["tool_reference"]
    tool_name: Name


class NamedTool(Wire):
    """A tool of the request, by name."""

    type: Literal["tool_reference"]
    name: Name


class NamedMcpTool(Wire):
    """A tool of an MCP server, by name."""

    type: Literal["mcp_tool_reference"]
    name: Name
    server_name: Name


class NamedMcpToolset(Wire):
    """All tools of an MCP server."""

    type: Literal["mcp_toolset_reference"]
    server_name: Name


class DefinedTool(Wire):
    """A tool that the request did not have before."""

    type: Literal["tool_definition"]
    definition: DefinableTool


AddedTool = Annotated[
    NamedTool | NamedMcpTool | NamedMcpToolset | DefinedTool, Field(discriminator="type")
]


class ToolAdditionBlock(CacheMark):
    """In a system turn: from here on the model has this tool."""

    type: Literal["tool_addition"]
    tool: AddedTool


class ToolRemovalBlock(CacheMark):
    """In a system turn: from here on the model has this tool no more."""

    type: Literal["tool_removal"]
    tool: Annotated[NamedTool | NamedMcpTool | NamedMcpToolset, Field(discriminator="type")]
