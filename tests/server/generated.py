"""Generated requests: every field and block that decides what a model reads, in legal combinations.

`requests()` gives bodies of POST /v1/messages that profile compat accepts for a model
that reads text, `examples` a few of them; `count_body` makes the body of count_tokens of one, and
`without_cache_marks` takes every cache mark out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from minimsg.protocol.request import CountTokensRequest

from .generated_blocks import (
    BROWSER,
    DOCUMENTS,
    EDITS,
    FOREIGN_BLOCKS,
    INPUTS,
    LONG_TEXTS,
    MAYBE,
    SCHEMAS,
    SEARCH_RESULTS,
    SELDOM,
    SOME_TEXT,
    TEMPLATE_VARIABLES,
    TEXT_BLOCKS,
    TEXTS,
    THOUGHTS,
    TOOLS,
    USER_BLOCKS,
    optional,
    some,
)
from .running import Json

MODEL: Final = "generated"

_FIELDS: Final = optional(
    system=st.one_of(TEXTS, some(TEXT_BLOCKS, at_least=1, at_most=3)),
    output_config=st.just({"effort": "low"}),
    speed=st.just("standard"),
    chat_template_kwargs=TEMPLATE_VARIABLES,
    metadata=st.just({"user_id": "somebody"}),
    service_tier=st.just("auto"),
    seed=st.just(7),
)
_MAYBE_TEXT: Final = some(TEXT_BLOCKS, at_most=1)
_RESULT_CONTENT: Final = st.one_of(
    LONG_TEXTS, TEXTS, st.just(""), some(TEXT_BLOCKS, DOCUMENTS, SEARCH_RESULTS, BROWSER)
)
_RESULT_FIELDS: Final = optional(content=_RESULT_CONTENT, is_error=MAYBE)
_PREFIXES: Final = TEXTS.map(str.rstrip).filter(bool)
_CHOICES: Final[st.SearchStrategy[JsonValue]] = st.sampled_from(
    [{"type": "auto"}, {"type": "auto", "disable_parallel_tool_use": True}, {"type": "none"}, None]
)
_THINKING: Final[st.SearchStrategy[JsonValue]] = st.sampled_from(
    [
        None,
        {"type": "disabled"},
        {"type": "adaptive"},
        {"type": "enabled", "budget_tokens": 1024},
        {"type": "between_tools"},
    ]
)


@st.composite
def requests(draw: st.DrawFn, model: str = MODEL) -> Json:
    """A body of POST /v1/messages."""
    tools = copy.deepcopy(draw(TOOLS))
    for tool in tools[1:]:  # never all of them
        if draw(SELDOM):
            tool["defer_loading"] = True
    messages = _conversation(draw, tools)
    body: Json = {"model": model, "max_tokens": 2048, "messages": messages, **draw(_FIELDS)}
    if tools:
        body |= {"tools": [*tools], "tool_choice": draw(_CHOICES)}
    if draw(MAYBE):
        body["context_management"] = draw(EDITS)
    if not _is_continued(messages):
        body["thinking"] = draw(_THINKING)
    body = copy.deepcopy(body)  # what it is made of may be in it twice
    _mark(draw, body)
    return body


def _is_continued(messages: Sequence[JsonValue]) -> bool:
    """Whether the reply goes on with the last message."""
    last = messages[-1]
    return isinstance(last, dict) and last["role"] == "assistant"


def _conversation(draw: st.DrawFn, tools: Sequence[Json]) -> list[JsonValue]:
    """Messages that end with a user's, a system's or the start of the assistant's answer."""
    writer = Writer(draw, tools)
    if draw(SELDOM):
        writer.begin_elsewhere()
    for _ in range(draw(st.integers(0, 3))):
        writer.exchange()
    writer.say("user", draw(USER_BLOCKS))
    writer.note()
    if draw(SELDOM):
        writer.say("assistant", [{"type": "text", "text": draw(_PREFIXES)}])
    return [*writer.messages]


class Writer:
    """A conversation under construction. Invariant: what there is so far is legal."""

    def __init__(self, draw: st.DrawFn, tools: Sequence[Json]) -> None:
        self.messages: list[Json] = []
        self._draw = draw
        self._names = [str(tool["name"]) for tool in tools]
        self._deferred = [str(tool["name"]) for tool in tools if tool.get("defer_loading")]
        self._num_calls = 0

    def say(self, role: str, blocks: Sequence[JsonValue]) -> None:
        """A message, as a string where it can be, or as two messages of the same role."""
        match blocks:
            case [{"type": "text", "text": text}] if self._draw(MAYBE):
                self.messages.append({"role": role, "content": text})
                return
        cut = self._draw(st.integers(0, len(blocks) - 1))
        for part in (blocks[:cut], blocks[cut:]):
            if part:
                self.messages.append({"role": role, "content": [*part]})

    def begin_elsewhere(self) -> None:
        """A first exchange that another server has answered, maybe summed up."""
        summary: JsonValue = {"type": "compaction", "content": self._draw(TEXTS)}
        start = [summary] if self._draw(MAYBE) else []
        self.say("user", self._draw(USER_BLOCKS))
        self.say("assistant", [*start, *self._draw(FOREIGN_BLOCKS), *self._draw(SOME_TEXT)])

    def exchange(self) -> None:
        """A user asks; the assistant answers, maybe after a few tool calls."""
        self.say("user", self._draw(USER_BLOCKS))
        self.note()
        for _ in range(self._draw(st.integers(0, 2))):
            self._loop()
        self.say("assistant", [*self._draw(THOUGHTS), *self._draw(SOME_TEXT)])

    def note(self) -> None:
        """Maybe a system turn, which may change the tools or be gone with the next user turn."""
        kinds = ["", "", "", "text", "effort", "clear", "add", "add", "define", "remove"]
        if not (kind := self._draw(st.sampled_from(kinds))):
            return
        message: Json = {"role": "system", "content": self._draw(SOME_TEXT)}
        match kind:
            case "effort":
                message["output_config"] = {"effort": "low"}
            case "clear":
                message["clear_at"] = "next_user_message"
            case "add" if self._deferred:
                message["content"] = [self._change("tool_addition", self._deferred)]
            case "remove" if self._names:
                message["content"] = [self._change("tool_removal", self._names)]
            case "define":
                tool: Json = {"name": "added", "input_schema": self._draw(SCHEMAS)}
                added: Json = {"type": "tool_definition", "definition": tool}
                message["content"] = [{"type": "tool_addition", "tool": added}]
        self.messages.append(message)

    def _change(self, type: str, names: Sequence[str]) -> Json:
        name = self._draw(st.sampled_from(names))
        return {"type": type, "tool": {"type": "tool_reference", "name": name}}

    def _loop(self) -> None:
        """The assistant calls tools; the user brings what came of it, in any order."""
        draw = self._draw
        calls = [self._call() for _ in range(draw(st.integers(1, 3)))]
        self.say("assistant", [*draw(THOUGHTS), *draw(_MAYBE_TEXT), *calls])
        results = [self._result(call["id"]) for call in draw(st.permutations(calls))]
        self.say("user", [*results, *draw(_MAYBE_TEXT)])

    def _call(self) -> Json:
        self._num_calls += 1
        name = self._draw(st.sampled_from(self._names or ["gone"]))
        id = f"toolu_{self._num_calls}"
        return {"type": "tool_use", "id": id, "name": name, "input": self._draw(INPUTS)}

    def _result(self, id: JsonValue) -> Json:
        fields, is_naming = self._draw(_RESULT_FIELDS), self._draw(SELDOM)
        if is_naming and self._deferred:
            name = self._draw(st.sampled_from(self._deferred))
            fields["content"] = [{"type": "tool_reference", "tool_name": name}]
        return {"type": "tool_result", "tool_use_id": id, **fields}


def _mark(draw: st.DrawFn, body: Json) -> None:
    """Put up to four cache marks where they may stand, those for an hour first."""
    places = list(markable(body))
    last = max(len(places) - 1, 0)
    chosen = sorted(draw(st.sets(st.integers(0, last), max_size=min(4, len(places)))))
    num_hours = draw(st.integers(0, len(chosen)))
    for order, place in enumerate(chosen):
        ttl: Json = {"ttl": "1h"} if order < num_hours else {}
        places[place]["cache_control"] = {"type": "ephemeral", **ttl}
    if not chosen and draw(MAYBE):
        body["cache_control"] = {"type": "ephemeral"}


def markable(body: Json) -> Iterator[Json]:
    """Every place of `body` that may carry a cache mark, in the order of the prompt."""
    yield from (tool for tool in _objects(body.get("tools")) if not tool.get("defer_loading"))
    yield from _objects(body.get("system"))
    for message in _objects(body["messages"]):
        if "clear_at" in message:
            continue
        for block in _objects(message["content"]):
            if block["type"] == "tool_result":
                yield from _objects(block.get("content"))
            if block["type"] not in ("thinking", "redacted_thinking"):
                yield block


def _objects(value: JsonValue) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def examples(number: int, model: str = MODEL) -> list[Json]:
    """So many requests, the same in every run, for tests that cannot be called many times."""
    bodies: list[Json] = []

    @seed(0)
    @settings(
        max_examples=number,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(requests(model))
    def collect(body: Json) -> None:
        bodies.append(body)

    collect()
    return bodies


def without_cache_marks(value: JsonValue) -> JsonValue:
    """`value` without a cache mark anywhere."""
    if isinstance(value, list):
        return [without_cache_marks(item) for item in value]
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if key != "cache_control"}
        return {key: without_cache_marks(item) for key, item in kept.items()}
    return value


def count_body(body: Json) -> Json:
    """The body of count_tokens for the request `body`."""
    return {key: value for key, value in body.items() if key in CountTokensRequest.model_fields}
