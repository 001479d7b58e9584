"""Strategies for the parts of a request: texts, blocks, tools, edits.

Texts are small and nasty: control strings of several models, white space at the ends,
characters of several bytes. What is put together of the parts is in `generated.py`.
Strategies are made once: to make one costs more than to draw from it.
"""

from __future__ import annotations

import json
from typing import Final

from hypothesis import strategies as st
from pydantic import JsonValue

from .foreign_blocks import FOREIGN
from .running import Json

Strategy = st.SearchStrategy[JsonValue]
Blocks = st.SearchStrategy[list[JsonValue]]

WORDS: Final = (
    "hello",
    "Grüße",
    "你好",
    "👩‍🚀",
    "<|im_end|>",
    "<|im_start|>system\n",
    "<tool_call>",
    "</think>",
    "<tool_response>",
    "{{ x }}",
    '"',
    "\\n",
    " ",
    "\n\n",
    "12 345",
)


def optional(**fields: Strategy) -> st.SearchStrategy[Json]:
    """Any of `fields`, each present or not."""
    return st.fixed_dictionaries({}, optional=dict(fields))


def some(*blocks: Strategy, at_least: int = 0, at_most: int = 2) -> Blocks:
    """A few blocks of these kinds."""
    return st.lists(st.one_of(*blocks), min_size=at_least, max_size=at_most)


TEXTS: Final = (
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("".join).filter(str.strip)
)
TEXT_BLOCKS: Final[Strategy] = TEXTS.map(lambda text: {"type": "text", "text": text})
LONG_TEXTS: Final = TEXTS.map(lambda text: f"{text} and so on" * 9)
MAYBE: Final = st.booleans()
SELDOM: Final = st.sampled_from([False, False, False, True])

_PLAIN_SOURCES: Final[Strategy] = TEXTS.map(
    lambda text: {"type": "text", "media_type": "text/plain", "data": text}
)
_CONTENT_SOURCES: Final[Strategy] = st.one_of(TEXTS, some(TEXT_BLOCKS)).map(
    lambda content: {"type": "content", "content": content}
)
DOCUMENTS: Final[Strategy] = st.builds(
    lambda source, fields: {"type": "document", "source": source, **fields},
    st.one_of(_PLAIN_SOURCES, _CONTENT_SOURCES),
    optional(title=TEXTS, context=TEXTS),
)
SEARCH_RESULTS: Final[Strategy] = st.fixed_dictionaries(
    {
        "type": st.just("search_result"),
        "source": TEXTS,
        "title": TEXTS,
        "content": some(TEXT_BLOCKS, at_least=1),
    }
)
USER_BLOCKS: Final = some(TEXT_BLOCKS, DOCUMENTS, SEARCH_RESULTS, at_least=1, at_most=3)
SOME_TEXT: Final = some(TEXT_BLOCKS, at_least=1)

BROWSER: Final[Strategy] = TEXTS.map(
    lambda text: {
        "type": "browser_state",
        "tabs": [{"tab_id": "1", "title": text, "url": "about:blank"}],
    }
)

_THINKING: Final[Strategy] = TEXTS.map(
    lambda text: {"type": "thinking", "thinking": text, "signature": "signed"}
)
_REDACTED: Final[Strategy] = st.just({"type": "redacted_thinking", "data": "b3BhcXVl"})
THOUGHTS: Final = some(_THINKING, _REDACTED)

_LEAVES: Final[Strategy] = st.one_of(st.none(), st.booleans(), st.integers(-999, 999), TEXTS)
VALUES: Final[Strategy] = st.one_of(
    _LEAVES, st.lists(_LEAVES, max_size=2), st.dictionaries(TEXTS, _LEAVES, max_size=2)
)
INPUTS: Final = st.dictionaries(st.sampled_from(["path", "query", "n"]), VALUES)

_PROPERTY: Final[Strategy] = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from(["string", "integer", "boolean"]),
    optional(description=TEXTS),
)


def _schema(properties: dict[str, JsonValue], is_closed: bool) -> Json:
    required: list[JsonValue] = [*sorted(properties)[:1]]
    schema: Json = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False} if is_closed else schema


SCHEMAS: Final = st.builds(
    _schema, st.dictionaries(st.sampled_from(["path", "query"]), _PROPERTY, min_size=1), MAYBE
)


def _custom_tool(name: str, schema: Json, fields: Json) -> Json:
    """An example of input, which is `{}`, must fit the schema."""
    required: Json = {"required": []} if "input_examples" in fields else {}
    return {"name": name, "input_schema": {**schema, **required}, **fields}


_CUSTOM_TOOLS: Final = st.builds(
    _custom_tool,
    st.sampled_from(["find", "read", "run-it", "say"]),
    SCHEMAS,
    optional(
        description=TEXTS,
        type=st.sampled_from(["custom", None]),
        eager_input_streaming=MAYBE,
        input_examples=st.just([{}]),
    ),
)
_CLIENT_TOOLS: Final = st.sampled_from(
    [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250124", "name": "str_replace_editor"},
        {"type": "memory_20250818", "name": "memory"},
    ]
)
TOOLS: Final[st.SearchStrategy[list[Json]]] = st.lists(
    st.one_of(_CUSTOM_TOOLS, _CUSTOM_TOOLS, _CLIENT_TOOLS),
    max_size=4,
    unique_by=lambda tool: json.dumps(tool["name"]),
)


def amounts(kind: str, *values: int) -> Strategy:
    """A trigger, or a number to keep."""
    return st.sampled_from(values).map(lambda value: {"type": kind, "value": value})


_CLEAR_THINKING: Final[Strategy] = optional(
    keep=st.one_of(st.just("all"), amounts("thinking_turns", 1, 2))
).map(lambda fields: {"type": "clear_thinking_20251015", **fields})
_CLEAR_TOOL_USES: Final[Strategy] = st.builds(
    lambda trigger, keep, fields: {
        "type": "clear_tool_uses_20250919",
        "trigger": trigger,
        "keep": keep,
        **fields,
    },
    st.one_of(amounts("tool_uses", 0, 1), amounts("input_tokens", 0, 60)),
    amounts("tool_uses", 0, 1),
    optional(
        clear_at_least=amounts("input_tokens", 0, 20),
        exclude_tools=st.just(["find"]),
        clear_tool_inputs=st.one_of(MAYBE, st.just(["read"])),
    ),
)
EDITS: Final[Strategy] = st.one_of(
    st.tuples(_CLEAR_TOOL_USES),
    st.tuples(_CLEAR_THINKING),
    st.tuples(_CLEAR_THINKING, _CLEAR_TOOL_USES),
).map(lambda edits: {"edits": [*edits]})

FOREIGN_BLOCKS: Final = st.sampled_from(FOREIGN)
TEMPLATE_VARIABLES: Final = optional(enable_thinking=MAYBE, reasoning_effort=st.just("low"))
