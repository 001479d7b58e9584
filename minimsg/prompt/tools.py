"""The tools that the model is told about: which, in which order, in which form.

First the tools that are not deferred, in the order of the request; then the deferred
ones that the conversation has named, in the order of their first naming, so that what
stood in front stays as it was. A tool is named by a `tool_reference` in a result or in a
`tool_addition`; a `tool_definition` brings a new one; a `tool_removal` takes any away.
Turns count that compaction or an edit has taken out of the prompt: what they named, the
client can still run.

A tool is given to a template as `{"type": "function", "function": {name, description,
parameters}}`; `parameters` is the input schema as the client wrote it, and examples of
input end the description. What the API's own client tools are is in `client_tools.py`.
Tools that only the hosted API runs are left out here; a rule refuses them unless the
server was told to drop them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from minimsg.errors import InvalidRequest
from minimsg.prompt.client_tools import description_of, input_schema_of
from minimsg.protocol.content import (
    ContentBlock,
    DefinedTool,
    NamedTool,
    ToolAdditionBlock,
    ToolReferenceBlock,
    ToolRemovalBlock,
    ToolResultBlock,
)
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.server_blocks import ToolSearchFound, ToolSearchResultBlock
from minimsg.protocol.tools import ClientTool
from minimsg.protocol.turns import Placed, turns_of
from minimsg.protocol.wire import JsonObject


@dataclass(frozen=True, slots=True)
class Function:
    """A tool as the model is told of it; `path` is where the client wrote it."""

    path: str
    name: str
    description: str | None
    parameters: JsonObject

    def template_form(self) -> dict[str, object]:
        """What a template takes for it."""
        told = {"description": self.description} if self.description is not None else {}
        function = {"name": self.name, **told, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The functions in their order, and the paths of the tools that nobody here can run."""

    functions: list[Function]
    left_out: list[str]


@dataclass(frozen=True, slots=True)
class _Naming:
    """From `path` on, the model has the tool `name`, or has it no more."""

    path: str
    name: str
    is_removal: bool = False
    definition: Function | None = None


def toolbox_of(request: PromptRequest) -> Toolbox:
    """The tools of `request`. Raises InvalidRequest for a name that no tool has."""
    placed = [(f"tools.{index}", tool) for index, tool in enumerate(request.tools)]
    mine = [(path, tool) for path, tool in placed if isinstance(tool, ClientTool)]
    known = {tool.name: _function(path, tool) for path, tool in mine}
    loaded = {tool.name: known[tool.name] for _, tool in mine if not tool.defer_loading}
    foreign = [(path, tool) for path, tool in placed if not isinstance(tool, ClientTool)]
    foreign_names = {getattr(tool, "name", "") for _, tool in foreign}
    for naming in _namings(request):
        if naming.name not in foreign_names:
            _heed(naming, known, loaded)
    return Toolbox(list(loaded.values()), [path for path, _ in foreign])


def _function(path: str, tool: ClientTool) -> Function:
    description = description_of(tool)
    if tool.input_examples:
        examples = [json.dumps(example, ensure_ascii=False) for example in tool.input_examples]
        description = "\n".join([description or "", "Examples of input:", *examples]).lstrip()
    return Function(path, tool.name, description, input_schema_of(tool))


def _heed(naming: _Naming, known: dict[str, Function], loaded: dict[str, Function]) -> None:
    if naming.definition:
        known[naming.name] = naming.definition
    if naming.name not in known:
        raise InvalidRequest(
            naming.path,
            f"Tool reference '{naming.name}' not found in available tools",
            error_code="tool_reference_unresolved",
        )
    if naming.is_removal:
        loaded.pop(naming.name, None)
    else:
        loaded[naming.name] = known[naming.name]


def _namings(request: PromptRequest) -> Iterator[_Naming]:
    for turn in turns_of(request.messages):
        for placed in turn.blocks:
            yield from _named_in(placed)


def _named_in(placed: Placed) -> Iterator[_Naming]:
    path, block = placed.path, placed.block
    if isinstance(block, ToolResultBlock):
        for place, part in enumerate(block.content):
            if isinstance(part, ToolReferenceBlock):
                yield _Naming(f"{path}.tool_result.content.{place}", part.tool_name)
    elif isinstance(block, ToolAdditionBlock) and isinstance(block.tool, DefinedTool):
        tool = block.tool.definition
        definition = _function(f"{path}.tool_addition.tool.tool_definition.definition", tool)
        yield _Naming(path, tool.name, definition=definition)
    elif isinstance(block, (ToolAdditionBlock, ToolRemovalBlock)):
        if isinstance(block.tool, NamedTool):
            yield _Naming(path, block.tool.name, isinstance(block, ToolRemovalBlock))
    else:
        yield from _found_elsewhere(path, block)


def _found_elsewhere(path: str, block: ContentBlock) -> Iterator[_Naming]:
    """Tools that the hosted API's tool search has found."""
    if isinstance(block, ToolSearchResultBlock) and isinstance(block.content, ToolSearchFound):
        for reference in block.content.tool_references:
            yield _Naming(path, reference.tool_name)
