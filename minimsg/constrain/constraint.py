"""What a request asks of the form of its reply, as plain data that crosses processes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from minimsg.constrain.subset import check_amount, check_subset
from minimsg.errors import InvalidRequest
from minimsg.protocol.options import JsonSchemaFormat
from minimsg.protocol.request import MessagesRequest, PromptRequest
from minimsg.protocol.rules.tools import NO_TOOLS, client_tools
from minimsg.protocol.tools import AnyChoice, CustomTool, NamedChoice, NoneChoice, ToolChoice
from minimsg.protocol.wire import JsonObject


@dataclass(frozen=True, slots=True)
class Constraint:
    """Beside the tools that the model may call, which are where their parser finds them."""

    must_call: list[str] = field(default_factory=list)  # one of these; empty: as it likes
    forbids_calls: bool = False  # of tools that the model was told of
    is_one_call: bool = False  # at most; with `must_call`, exactly
    strict: dict[str, str] = field(default_factory=dict)  # a tool's name -> its schema's JSON path
    schema: JsonObject | None = None  # of a reply that is one JSON value
    schema_path: str = "output_config.format.schema"
    thinking_budget: int | None = None  # ids
    max_tokens: int | None = None  # as the client said

    @property
    def is_strict(self) -> bool:
        """Whether the client counts on a schema."""
        return bool(self.strict) or (self.schema is not None and not self.must_call)


def constraint_of(
    request: PromptRequest, callable: Collection[str], thinking_budget: int | None
) -> Constraint:
    """What `request` asks for; `callable` are the tools that the model may call.

    Raises InvalidRequest for a choice of a tool that it may not.
    """
    choice = request.tool_choice
    format, format_path = _format(request)
    return Constraint(
        must_call=_must_call(choice, callable),
        forbids_calls=isinstance(choice, NoneChoice),
        is_one_call=_is_one_call(choice),
        strict=_strict(request),
        schema=format.schema_ if format else None,
        schema_path=format_path,
        thinking_budget=thinking_budget,
        max_tokens=request.max_tokens if isinstance(request, MessagesRequest) else None,
    )


def check_strictly(request: PromptRequest) -> None:
    """What `request` wants enforced, the hosted API would enforce. Raises InvalidRequest."""
    tools = [(path, tool) for path, tool in client_tools(request) if tool.strict]
    own = {path: tool.input_schema for path, tool in tools if isinstance(tool, CustomTool)}
    format, format_path = _format(request)
    schemas = own | ({format_path: format.schema_} if format else {})
    check_amount(len(tools), list(schemas.values()))
    for path, schema in schemas.items():
        check_subset(path, schema)


def _must_call(choice: ToolChoice | None, callable: Collection[str]) -> list[str]:
    """Deferred tools, and those that were taken away, are in the request and not callable."""
    if isinstance(choice, AnyChoice):
        if not callable:
            raise InvalidRequest("", NO_TOOLS)
        return list(callable)
    if not isinstance(choice, NamedChoice):
        return []
    if choice.name not in callable:
        raise InvalidRequest("", f"Tool '{choice.name}' not found in provided tools")
    return [choice.name]


def _is_one_call(choice: ToolChoice | None) -> bool:
    if choice is None or isinstance(choice, NoneChoice):
        return False
    # Whoever names a tool wants it called; small models would call it without end.
    return isinstance(choice, NamedChoice) or bool(choice.disable_parallel_tool_use)


def _format(request: PromptRequest) -> tuple[JsonSchemaFormat | None, str]:
    if request.output_config and request.output_config.format:
        return request.output_config.format, "output_config.format.schema"
    return request.output_format, "output_format.schema"


def _strict(request: PromptRequest) -> dict[str, str]:
    """The schemas that calls must conform to, by their tool: of what is not custom, ours."""
    latest = {tool.name: (path, tool) for path, tool in client_tools(request)}
    return {
        name: f"{path}.input_schema" if isinstance(tool, CustomTool) else path
        for name, (path, tool) in latest.items()
        if tool.strict
    }
