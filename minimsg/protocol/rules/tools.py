"""Rules about tools: their names, their schemas, what nothing here can run, what may be forced.

What a schema must be is in `schemas.py`, tools that come and go in messages are in
`toolbox.py`. Source: Messages API reference, tools and tool_choice; public error reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from typing_extensions import TypeIs

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import DefinedTool, ToolAdditionBlock
from minimsg.protocol.options import EnabledThinking
from minimsg.protocol.rules.examples import misfit
from minimsg.protocol.rules.schemas import check_input_schema
from minimsg.protocol.server_tools import McpToolset, ServerTool, WebTool
from minimsg.protocol.tools import AnyChoice, ClientTool, CustomTool, NamedChoice, Toolset
from minimsg.protocol.turns import blocks_of

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest
    from minimsg.protocol.tools import Tool


NO_TOOLS: Final = "tool_choice may only be specified while providing tools."


def names_are_unique(request: PromptRequest, dialect: Dialect) -> None:
    names = [name for tool in request.tools if (name := name_of(tool)) is not None]
    if len(set(names)) < len(names):
        raise InvalidRequest("tools", "Tool names must be unique.")


def schemas_are_valid(request: PromptRequest, dialect: Dialect) -> None:
    for path, tool in _custom_tools(request):
        check_input_schema(f"{path}.input_schema", tool.input_schema)


def examples_fit_their_schema(request: PromptRequest, dialect: Dialect) -> None:
    for path, tool in _custom_tools(request):
        for index, example in enumerate(tool.input_examples or ()):
            if place := misfit(tool.input_schema, example):
                why = f"the example does not match input_schema: {place[:200]}"
                raise InvalidRequest(f"{path}.input_examples.{index}", why)


def some_tool_is_loaded(request: PromptRequest, dialect: Dialect) -> None:
    """Deferred tools are found by another one."""
    if request.tools and all(is_deferred(tool) for tool in request.tools):
        why = "At least one tool must have defer_loading=false. All tools cannot be deferred."
        raise InvalidRequest("tools", why)


def deferred_tools_are_not_marked(request: PromptRequest, dialect: Dialect) -> None:
    for index, tool in enumerate(request.tools):
        if is_deferred(tool) and tool.cache_control:
            why = (
                f"Tool '{name_of(tool)}' cannot have both defer_loading=true and cache_control "
                "set. Tools with defer_loading cannot use prompt caching."
            )
            raise InvalidRequest(f"tools.{index}", why)


def domains_are_allowed_or_blocked(request: PromptRequest, dialect: Dialect) -> None:
    for index, tool in enumerate(request.tools):
        if not isinstance(tool, WebTool):
            continue
        if tool.allowed_domains is not None and tool.blocked_domains is not None:
            why = "only one of allowed_domains and blocked_domains can be given"
            raise InvalidRequest(f"tools.{index}.{tool.type}", why)


def tools_can_be_run(request: PromptRequest, dialect: Dialect) -> None:
    """By the client. Nothing here runs what the hosted API runs itself."""
    for index, tool in enumerate(request.tools):
        if is_foreign(tool) and not drops_foreign(dialect):
            why = f"tools of type '{tool.type}' are known to the hosted API only; leave it out"
            raise InvalidRequest(f"tools.{index}", why)


def strict_tools_are_supported(request: PromptRequest, dialect: Dialect) -> None:
    """A promise about the input that nobody keeps is refused: clients stop checking for it."""
    if dialect.can("strict-tools"):
        return
    for path, tool in client_tools(request):
        if tool.strict:
            raise InvalidRequest(f"{path}.strict", "strict tools are not supported for this model")


def a_choice_has_tools(request: PromptRequest, dialect: Dialect) -> None:
    if request.tool_choice and not request.tools:
        raise InvalidRequest("", NO_TOOLS)


def the_chosen_tool_exists(request: PromptRequest, dialect: Dialect) -> None:
    """A tool that is left out cannot be chosen."""
    choice = request.tool_choice
    names = {name_of(tool) for tool in request.tools if not is_foreign(tool)}
    if isinstance(choice, AnyChoice) and not names:
        raise InvalidRequest("", NO_TOOLS)
    if isinstance(choice, NamedChoice) and choice.name not in names:
        raise InvalidRequest("", f"Tool '{choice.name}' not found in provided tools")


def a_choice_can_be_forced(request: PromptRequest, dialect: Dialect) -> None:
    if not isinstance(request.tool_choice, (AnyChoice, NamedChoice)):
        return
    if not dialect.can("forced-tools"):
        why = 'type "tool" and "any" are not supported for this model.'
        raise InvalidRequest("tool_choice", why)
    thinks = isinstance(request.thinking, EnabledThinking)
    if thinks and (dialect.can("thinking") or dialect.is_strict):
        raise InvalidRequest("", "Thinking may not be enabled when tool_choice forces tool use.")


def name_of(tool: Tool) -> str | None:
    """What the model calls `tool`; a set of tools has no name."""
    return None if isinstance(tool, (Toolset, McpToolset)) else tool.name


def is_deferred(tool: Tool) -> bool:
    """Whether the model is told of `tool` only once something names it."""
    return not isinstance(tool, (Toolset, McpToolset)) and bool(tool.defer_loading)


def is_foreign(tool: Tool) -> TypeIs[Toolset | ServerTool]:
    """Whether only the hosted API knows what `tool` is or runs it itself."""
    return isinstance(tool, (Toolset, ServerTool))


def drops_foreign(dialect: Dialect) -> bool:
    """Whether such tools are left out of the prompt instead of being refused."""
    return dialect.drops_server_tools and not dialect.is_strict


def client_tools(request: PromptRequest) -> Iterator[tuple[str, ClientTool]]:
    """The tools that the client runs, those included that a conversation brings along the way."""
    for index, tool in enumerate(request.tools):
        if isinstance(tool, ClientTool):
            yield f"tools.{index}.{tool.type}", tool
    for path, block in blocks_of(request.messages, ToolAdditionBlock):
        if isinstance(block.tool, DefinedTool):
            tool = block.tool.definition
            path = f"{path}.tool_addition.tool.tool_definition.definition"
            yield f"{path}.{tool.type}", tool


def _custom_tools(request: PromptRequest) -> Iterator[tuple[str, CustomTool]]:
    for path, tool in client_tools(request):
        if isinstance(tool, CustomTool):
            yield path, tool
