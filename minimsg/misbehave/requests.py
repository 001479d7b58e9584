"""Requests that are read wrongly: what is not looked at, what is taken though it is wrong."""

from __future__ import annotations

import json
from typing import Any, Final

from minimsg.misbehave.mutant import Asked, Mutant, Table

MESSAGES: Final = "/v1/messages"
COUNT: Final = "/v1/messages/count_tokens"


def path(asked: Asked) -> str:
    return asked.path.partition("?")[0]


def drop(asked: Asked, *keys: str, where: tuple[str, ...] = (MESSAGES, COUNT)) -> None:
    """Leave fields out of a request to one of the paths."""
    if asked.json and path(asked) in where:
        asked.put({key: value for key, value in asked.json.items() if key not in keys})


def mend(asked: Asked, key: str, good: Any, value: Any) -> None:
    """Put `value` where a field is not `good`."""
    found = asked.json
    if path(asked) == MESSAGES and key in found and not good(found[key]):
        asked.put(found | {key: value})


def map_turns(asked: Asked, change: Any) -> None:
    """Change the list of turns, where there is one."""
    found = asked.json
    if isinstance(found.get("messages"), list):
        asked.put(found | {"messages": change(found["messages"])})


def map_blocks(asked: Asked, change: Any) -> None:
    """Change every block of every turn; None drops it."""

    def turn(each: Any) -> Any:
        if not isinstance(each, dict) or not isinstance(each.get("content"), list):
            return each
        blocks = [change(b) if isinstance(b, dict) else b for b in each["content"]]
        return each | {"content": [b for b in blocks if b is not None]}

    map_turns(asked, lambda turns: [turn(each) for each in turns])


def without_blocks(asked: Asked, *kinds: str) -> None:
    map_blocks(asked, lambda block: None if block.get("type") in kinds else block)


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


def refuses_temperature(asked: Asked) -> None:
    """temperature is refused."""
    if "temperature" in asked.json:
        asked.put(asked.json | {"temperature": "no"})


def count_without_tools(asked: Asked) -> None:
    """count_tokens leaves tools out."""
    drop(asked, "tools", "tool_choice", where=(COUNT,))


def count_without_system(asked: Asked) -> None:
    """count_tokens leaves the system prompt out."""
    drop(asked, "system", where=(COUNT,))


def count_of_the_last_turn(asked: Asked) -> None:
    """count_tokens counts the last turn only."""
    if path(asked) == COUNT:
        map_turns(asked, lambda turns: [t for t in turns[-1:] if t.get("role") == "user"] or turns)


def history_dropped(asked: Asked) -> None:
    """Only the last turn is read."""
    turns = asked.json.get("messages")
    if isinstance(turns, list) and len(turns) > 1 and '"tool' not in str(asked.body):
        map_turns(asked, lambda turns: turns[-1:])


def documents_dropped(asked: Asked) -> None:
    """Documents and search results are dropped in silence."""
    without_blocks(asked, "document", "search_result")


def results_dropped(asked: Asked) -> None:
    """What tools said is not read."""
    map_blocks(asked, lambda b: b | {"content": ""} if b.get("type") == "tool_result" else b)


def inputs_dropped(asked: Asked) -> None:
    """What tools were asked is not read."""
    map_blocks(asked, lambda b: b | {"input": {}} if b.get("type") == "tool_use" else b)


def unknown_blocks_taken(asked: Asked) -> None:
    """Blocks of an unknown type are dropped."""
    without_blocks(asked, "hologram")


def pairs_unchecked(asked: Asked) -> None:
    """Calls and results need not pair."""
    if b"tool_use" in asked.body or b"tool_result" in asked.body:
        without_blocks(asked, "tool_use", "tool_result")
        filler = {"type": "text", "text": "-"}
        map_turns(asked, lambda turns: [t | {"content": t["content"] or [filler]} for t in turns])


def images_taken(asked: Asked) -> None:
    """Pictures that are none are dropped."""
    without_blocks(asked, "image")
    filler = {"type": "text", "text": "-"}
    map_turns(asked, lambda turns: [t | {"content": t.get("content") or [filler]} for t in turns])


def system_turns_dropped(asked: Asked) -> None:
    """Turns of the system are dropped."""
    map_turns(
        asked,
        lambda turns: [t for t in turns if not isinstance(t, dict) or t.get("role") != "system"],
    )


def roles_unchecked(asked: Asked) -> None:
    """An unknown role is the user's."""

    def turn(each: Any) -> Any:
        is_known = not isinstance(each, dict) or each.get("role") in ("user", "assistant", "system")
        return each if is_known else each | {"role": "user"}

    map_turns(asked, lambda turns: [turn(each) for each in turns])


def no_turns_taken(asked: Asked) -> None:
    """A conversation without turns is answered."""
    map_turns(asked, lambda turns: turns or [{"role": "user", "content": "-"}])


def empty_taken(asked: Asked) -> None:
    """Empty turns are answered."""

    def turn(each: Any) -> Any:
        empty = isinstance(each, dict) and each.get("content") in ("", [])
        return each | {"content": "-"} if empty else each

    map_turns(asked, lambda turns: [turn(each) for each in turns])


def negative_taken(asked: Asked) -> None:
    """A negative max_tokens is read as some default."""
    mend(asked, "max_tokens", lambda n: not isinstance(n, int) or n >= 0, 16)


def types_unchecked(asked: Asked) -> None:
    """max_tokens may be any JSON."""
    mend(asked, "max_tokens", lambda n: isinstance(n, int) and n is not True, 16)


def any_model(asked: Asked) -> None:
    """Every model is the same."""
    if "no-such-model" in str(asked.json.get("model")):
        asked.body = asked.body.replace(b"no-such-model-7421", _model(asked))


def _model(asked: Asked) -> bytes:
    """The name by which the last request was answered."""
    return asked.headers.get("x-served-model", "model").encode()


def broken_json_taken(asked: Asked) -> None:
    """A body that is no JSON is an empty object."""
    if asked.method == "POST" and path(asked) == MESSAGES:
        try:
            json.loads(asked.body)
        except (ValueError, RecursionError):
            model = asked.headers.get("x-served-model", "model")
            turns = [{"role": "user", "content": "-"}]
            asked.put({"model": model, "max_tokens": 1, "messages": turns})


def refuses_betas(asked: Asked) -> None:
    """Whoever names a beta is refused."""
    if "anthropic-beta" in asked.headers:
        asked.put({})


def refuses_the_new_version(asked: Asked) -> None:
    """Version 2026-10-21 is refused."""
    if asked.headers.get("anthropic-version") == "2026-10-21":
        asked.put({})


def refuses_the_query(asked: Asked) -> None:
    """A path with a query is not found."""
    asked.path = asked.path.replace("?beta=true", "/beta")


def refuses_metadata(asked: Asked) -> None:
    """metadata is refused."""
    if "metadata" in asked.json:
        asked.put(asked.json | {"metadata": 5})


def refuses_lists(asked: Asked) -> None:
    """system and content must be texts."""
    if isinstance(asked.json.get("system"), list):
        asked.put(asked.json | {"system": 5})


def thread_ignored(asked: Asked) -> None:
    """thread is ignored."""
    drop(asked, "thread")


def formats_unchecked(asked: Asked) -> None:
    """A format that is none is not looked at."""
    found = asked.json.get("output_config")
    if isinstance(found, dict) and not _is_format(found.get("format")):
        drop(asked, "output_config")


def _is_format(value: Any) -> bool:
    schema = value.get("schema") if isinstance(value, dict) else None
    return isinstance(schema, dict) and value.get("type") == "json_schema"


REQUESTS: Final = Table(
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
        refuses_temperature: "*temperature*",
        count_without_tools: "count.usage*",
        count_without_system: "count.usage*",
        count_of_the_last_turn: "count.usage*",
        history_dropped: "[mt]*.*",
        documents_dropped: "blocks.*",
        results_dropped: "tools.result*",
        inputs_dropped: "tools.input*",
        unknown_blocks_taken: "blocks.refused*",
        pairs_unchecked: "tools.pair-refused*",
        images_taken: "blocks.image*",
        system_turns_dropped: "turns.system*",
        roles_unchecked: "turns.refused*",
        no_turns_taken: "turns.refused*",
        empty_taken: "turns.refused*",
        negative_taken: "request.bounds*",
        types_unchecked: "request.type*",
        any_model: "request.unknown-model*",
        broken_json_taken: "request.json*",
        refuses_betas: "versions.betas*",
        refuses_the_new_version: "versions.accepted*",
        refuses_the_query: "request.beta-query*",
        refuses_metadata: "request.accepted*",
        refuses_lists: "request.accepted*",
        thread_ignored: "profile.thread",
        formats_unchecked: "structured.refused*",
    },
)
MUTANTS: Final[list[Mutant]] = REQUESTS.mutants()
