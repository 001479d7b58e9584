"""Requests of which something is not looked at, or not counted."""

from __future__ import annotations

from typing import Final

from minimsg.misbehave.mutant import Asked, mutants

MESSAGES: Final = "/v1/messages"
COUNT: Final = "/v1/messages/count_tokens"


def path(asked: Asked) -> str:
    return asked.path.partition("?")[0]


def drop(asked: Asked, *keys: str, where: tuple[str, ...] = (MESSAGES, COUNT)) -> None:
    """Leave fields out of a request to one of the paths."""
    if asked.json and path(asked) in where:
        asked.put({key: value for key, value in asked.json.items() if key not in keys})


def stream_ignored(asked: Asked) -> None:
    """stream is not looked at: every answer is plain."""
    drop(asked, "stream")


def stops_ignored(asked: Asked) -> None:
    """stop_sequences are not looked at."""
    drop(asked, "stop_sequences")


def choice_ignored(asked: Asked) -> None:
    """tool_choice is not looked at."""
    drop(asked, "tool_choice")


def choice_none_ignored(asked: Asked) -> None:
    """tool_choice none forces a call."""
    found = asked.json
    if (found.get("tool_choice") or {}) == {"type": "none"}:
        asked.put(found | {"tool_choice": {"type": "any"}})


def any_for_tool(asked: Asked) -> None:
    """A named tool is not told from any."""
    found = asked.json
    choice = found.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "tool" and choice.get("name"):
        others = [t for t in found.get("tools", []) if t.get("name") != choice["name"]]
        named = others or found.get("tools", [])
        asked.put(found | {"tools": named, "tool_choice": {"type": "any"}})


def format_ignored(asked: Asked) -> None:
    """output_config is not looked at."""
    drop(asked, "output_config")


def tools_ignored(asked: Asked) -> None:
    """tools are not looked at."""
    drop(asked, "tools", "tool_choice")


def system_ignored(asked: Asked) -> None:
    """system is not looked at."""
    drop(asked, "system")


def marks_ignored(asked: Asked) -> None:
    """cache_control is not looked at, nor checked."""
    asked.body = asked.body.replace(b'"cache_control"', b'"x_cache_control"')


def max_tokens_ignored(asked: Asked) -> None:
    """max_tokens does not bound the reply."""
    found = asked.json
    if isinstance(found.get("max_tokens"), int) and 0 < found["max_tokens"] < 100:
        asked.put(found | {"max_tokens": found["max_tokens"] + 40})


def count_without_tools(asked: Asked) -> None:
    """count_tokens leaves tools out."""
    drop(asked, "tools", "tool_choice", where=(COUNT,))


def count_without_system(asked: Asked) -> None:
    """count_tokens leaves the system prompt out."""
    drop(asked, "system", where=(COUNT,))


def thread_ignored(asked: Asked) -> None:
    """thread is ignored."""
    drop(asked, "thread")


MUTANTS: Final = mutants(
    "request",
    {
        stream_ignored: "stream.type*",
        stops_ignored: "stop.sequence.*",
        choice_ignored: "choice.*",
        choice_none_ignored: "choice.none*",
        any_for_tool: "choice.tool*",
        format_ignored: "structured.*",
        tools_ignored: "tools.*",
        system_ignored: "[mt]*.*",
        marks_ignored: "caching.*",
        max_tokens_ignored: "stop.bound*",
        count_without_tools: "count.usage*",
        count_without_system: "count.usage*",
        thread_ignored: "profile.thread",
    },
)
