"""What a request asks of the form of its reply, as plain data that crosses processes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from minimsg.constrain.subset import check_amount, check_subset
from minimsg.protocol.options import JsonSchemaFormat
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.tools import AnyChoice, CustomTool, NamedChoice, NoneChoice, ToolChoice
from minimsg.protocol.wire import JsonObject


@dataclass(frozen=True, slots=True)
class Constraint:
    """Beside the tools that the model may call, which are where their parser finds them."""

    must_call: list[str] = field(default_factory=list)  # one of these; empty: as it likes
    is_one_call: bool = False  # at most; with `must_call`, exactly
    strict: dict[str, str] = field(default_factory=dict)  # a tool's name -> its schema's JSON path
    schema: JsonObject | None = None  # of a reply that is one JSON value
    schema_path: str = "output_config.format.schema"
    thinking_budget: int | None = None  # ids


def constraint_of(
    request: PromptRequest, callable: Collection[str], thinking_budget: int | None
) -> Constraint:
    """What `request` asks for; `callable` are the tools that the model may call."""
    choice = request.tool_choice
    must_call: list[str] = []
    if isinstance(choice, AnyChoice):
        must_call = list(callable)
    elif isinstance(choice, NamedChoice):
        must_call = [choice.name]
    format, format_path = _format(request)
    return Constraint(
        must_call=must_call,
        is_one_call=_is_one_call(choice),
        strict=_strict(request),
        schema=format.schema_ if format else None,
        schema_path=format_path,
        thinking_budget=thinking_budget,
    )


def check_strictly(request: PromptRequest) -> None:
    """What `request` wants enforced, the hosted API would enforce. Raises InvalidRequest."""
    strict = {
        f"tools.{index}.custom": tool.input_schema
        for index, tool in enumerate(request.tools)
        if isinstance(tool, CustomTool) and tool.strict
    }
    format, format_path = _format(request)
    schemas = strict | ({format_path: format.schema_} if format else {})
    check_amount(len(strict), list(schemas.values()))
    for path, schema in schemas.items():
        check_subset(path, schema)


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
    """The schemas that calls must conform to, by their tool: what is not custom has none here."""
    return {
        tool.name: f"tools.{index}.custom.input_schema"
        for index, tool in enumerate(request.tools)
        if isinstance(tool, CustomTool) and tool.strict
    }
