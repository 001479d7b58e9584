"""What is read off a request: which tools must be called, and whose schemas hold."""

from __future__ import annotations

from typing import Any

import pytest

from minimsg.constrain.constraint import Constraint, constraint_of
from minimsg.errors import InvalidRequest
from minimsg.prompt.tools import toolbox_of
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import PromptRequest

NOW = {"name": "now", "input_schema": {"type": "object"}}
LATER = {**NOW, "name": "later", "defer_loading": True}
BASH = {"type": "bash_20250124", "name": "bash"}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
ANY = {"type": "any"}


def removal(name: str) -> dict[str, Any]:
    tool = {"type": "tool_reference", "name": name}
    return {"role": "system", "content": [{"type": "tool_removal", "tool": tool}]}


def asked(tools: list[dict[str, Any]], choice: dict[str, Any] | None = None,
    *turns: dict[str, Any]) -> Constraint:  # fmt: skip
    given = {"tool_choice": choice} if choice else {}
    messages = [{"role": "user", "content": "x"}, *turns]
    fields = {"model": "m", "messages": messages, "tools": tools, **given}
    request = PromptRequest.parse(fields, Dialect(drops_server_tools=True))
    callable = [function.name for function in toolbox_of(request).functions]
    return constraint_of(request, callable, None)


@pytest.mark.parametrize(
    ("tools", "turns"),
    [([SEARCH, LATER], []), ([SEARCH], []), ([NOW], [removal("now")])],
    ids=["deferred", "dropped", "removed"],
)
def test_any_is_refused_where_no_tool_is_left_to_call(
    tools: list[dict[str, Any]], turns: list[dict[str, Any]]
) -> None:
    with pytest.raises(InvalidRequest, match=r"^tool_choice may only be specified while providing"):
        asked(tools, ANY, *turns)


def test_any_means_the_tools_that_the_model_was_told_of() -> None:
    assert asked([LATER, NOW, BASH, SEARCH], ANY).must_call == ["now", "bash"]


def test_a_tool_that_the_model_was_not_told_of_cannot_be_forced() -> None:
    with pytest.raises(InvalidRequest, match=r"^Tool 'later' not found in provided tools$"):
        asked([NOW, LATER], {"type": "tool", "name": "later"})


def test_client_tools_of_every_type_can_be_strict() -> None:
    strict = asked([{**NOW, "strict": True}, {**BASH, "strict": True}, LATER]).strict
    assert strict == {"now": "tools.0.custom.input_schema", "bash": "tools.1.bash_20250124"}


def test_a_tool_that_the_conversation_brings_is_as_strict_as_it_says() -> None:
    def brought(**fields: bool) -> dict[str, Any]:
        tool = {"type": "tool_definition", "definition": {**NOW, **fields}}
        return {"role": "system", "content": [{"type": "tool_addition", "tool": tool}]}

    path = "messages.1.content.0.tool_addition.tool.tool_definition.definition.custom.input_schema"
    assert asked([NOW], None, brought(strict=True)).strict == {"now": path}
    assert asked([{**NOW, "strict": True}], None, brought()).strict == {}
