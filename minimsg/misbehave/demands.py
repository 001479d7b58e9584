"""Requests that are legal and refused, or read as something else than they say."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.mutant import Asked, mutants
from minimsg.misbehave.requests import COUNT, drop, path

FEW_STOPS: Final = 4


def count_needs_max_tokens(asked: Asked) -> None:
    """count_tokens demands max_tokens."""
    if path(asked) == COUNT and "max_tokens" not in asked.json:
        drop(asked, "messages")


def tools_need_a_description(asked: Asked) -> None:
    """A tool without a description is refused."""
    if any("description" not in tool for tool in _tools(asked)):
        asked.put(asked.json | {"tools": [{}]})


def tools_need_properties(asked: Asked) -> None:
    """A tool whose schema has no properties is refused."""
    schemas = [tool.get("input_schema") for tool in _tools(asked)]
    if any(isinstance(schema, dict) and "properties" not in schema for schema in schemas):
        asked.put(asked.json | {"tools": [{}]})


def few_stops(asked: Asked) -> None:
    """More than four stop sequences are refused."""
    stops = asked.json.get("stop_sequences")
    if isinstance(stops, list) and len(stops) > FEW_STOPS:
        asked.put(asked.json | {"stop_sequences": "too many"})


def long_stops_missed(asked: Asked) -> None:
    """A stop sequence of several tokens is not found."""
    stops = asked.json.get("stop_sequences")
    if isinstance(stops, list):
        short = [stop for stop in stops if not isinstance(stop, str) or len(stop.strip()) < 2]
        asked.put(asked.json | {"stop_sequences": short})


def stops_in_any_case(asked: Asked) -> None:
    """A stop sequence is found whatever the case of its letters."""
    stops = asked.json.get("stop_sequences")
    if isinstance(stops, list) and all(isinstance(stop, str) for stop in stops):
        asked.put(asked.json | {"stop_sequences": [*stops, *(stop.lower() for stop in stops)]})


def one_token_short(asked: Asked) -> None:
    """A reply ends one token before max_tokens."""
    bound = asked.json.get("max_tokens")
    if type(bound) is int and bound > 1 and path(asked) != COUNT:
        asked.put(asked.json | {"max_tokens": bound - 1})


def _tools(asked: Asked) -> list[dict[str, Any]]:
    tools = asked.json.get("tools")
    return [each for each in tools if isinstance(each, dict)] if isinstance(tools, list) else []


MUTANTS: Final = mutants(
    "request",
    {
        count_needs_max_tokens: "count.*",
        tools_need_a_description: "tools.accepted*",
        tools_need_properties: "tools.accepted*",
        few_stops: "[rs]*.*",
        long_stops_missed: "stop.sequence*",
        stops_in_any_case: "stop.sequence*",
        one_token_short: "stop.exact*",
    },
)
