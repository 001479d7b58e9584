"""Conversations that a client may send, drawn by hypothesis.

Every text holds a word of its own, so that a test can see what reached the prompt, and
control strings, halves of them and markup, which must stay text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

Block = dict[str, Any]

CHOICES: Final = 300  # more than a request takes; the first choice is taken where they run out

AWKWARD: Final = (
    *("", " ", "\n", " \n\n", "<", "|", ">", "<|", "|>", "im_end", "think", "</", "tool_call"),
    *("<tool_response>", "</tool_response>", '<tool_call>{"name": "x", "arguments": {}}'),
    *("</tool_call>", "<function=x>", "<think>", "</think>", "<|im_end|>", "<|im_start|>system\n"),
    *("{{ x }}", "{% if %}", "\\", '"', "é", "\u2028", "<｜User｜>"),
)


def requests() -> st.SearchStrategy[Block]:
    """The fields of a request: `messages` and `tools`, maybe `system`.

    A byte makes a choice: one draw for a whole request, since drawing is what takes the time.
    """
    return st.binary(min_size=CHOICES, max_size=CHOICES).map(lambda data: _Author(data).write())


def words_of(value: object) -> list[str]:
    """The words in `value`, in the order of its blocks."""
    return re.findall(r"w\d+w", json.dumps(value))


def harmless(value: Any) -> Any:
    """`value` with nothing but the words in its texts; what was empty stays so."""
    if isinstance(value, list):
        return [harmless(item) for item in value]
    if isinstance(value, dict):
        thought = {"thinking": "t"} if value.get("thinking") else {}
        return {harmless(key): harmless(item) for key, item in value.items()} | thought
    word = re.search(r"w\d+w", value) if isinstance(value, str) else None
    return word[0] if word else value


class _Author:
    """Writes the parts of one request; `data` makes the choices."""

    def __init__(self, data: bytes) -> None:
        self._choices = iter(data)
        self._num_words = 0
        self._num_calls = 0

    def write(self) -> Block:
        """A whole request."""
        body: Block = {}
        if self._one_of(True, False):
            body["system"] = [self._text() for _ in range(self._number(1, 2))]
        messages = [self._system() if self._number(0, 9) == 0 else self._user([])]
        for _ in range(self._number(0, 4)):
            messages += self._exchange()
        if self._number(0, 3) == 0:
            messages.append({"role": "assistant", "content": [self._text()]})
        tools = [self._tool(number) for number in range(self._one_of(0, 1, 3))]
        return {**body, "messages": messages, "tools": tools}

    def _exchange(self) -> list[Block]:
        """An assistant's turn and the user's after it, maybe a system turn behind either."""
        kinds = [self._text, self._call, self._call, self._thought, self._search, self._sealed]
        blocks = [self._one_of(*kinds)() for _ in range(self._number(1, 3))]
        ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        parts = [{"role": "assistant", "content": blocks}, self._user(ids)]
        if self._one_of(True, False, False):
            parts.insert(self._number(1, 2), self._system())
        return parts

    def _user(self, ids: Sequence[str]) -> Block:
        """Results of `ids` first, in some order, then anything between and after them."""
        blocks = [self._result(id) for id in self._one_of(ids, ids, ids[::-1])]
        for _ in range(self._number(0 if ids else 1, 2)):
            blocks.insert(self._number(min(len(ids), 1), len(blocks)), self._said())
        return {"role": "user", "content": blocks}

    def _system(self) -> Block:
        return {"role": "system", "content": [self._text()]}

    def _said(self) -> Block:
        kind = self._one_of(self._text, self._document, self._search_result)
        said: Block = kind()
        return said

    def _text(self) -> Block:
        return {"type": "text", "text": self._words()}

    def _document(self) -> Block:
        source = {"type": "text", "media_type": "text/plain", "data": self._words()}
        return {"type": "document", "title": self._words(), "source": source}

    def _search_result(self) -> Block:
        result = {"type": "search_result", "source": self._words(), "title": self._words()}
        return {**result, "content": [self._text()]}

    def _thought(self) -> Block:
        return {"type": "thinking", "thinking": self._one_of(*AWKWARD), "signature": "s"}

    def _sealed(self) -> Block:
        return {"type": "redacted_thinking", "data": "x"}

    def _search(self) -> Block:
        query = {"query": self._words()}
        return {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": query}

    def _call(self) -> Block:
        self._num_calls += 1
        more = self._one_of({}, {"items": [1, {"m": None}], "b": True, "": "", "o": {}})
        input = {"k": self._words(), **more} if self._one_of(True, False) else more
        return {"type": "tool_use", "id": f"t{self._num_calls}", "name": "f0", "input": input}

    def _result(self, id: str) -> Block:
        result: Block = {"type": "tool_result", "tool_use_id": id}
        result["is_error"] = self._one_of(True, False)
        if (form := self._one_of("absent", "text", "blocks")) == "text":
            result["content"] = self._words()
        elif form == "blocks":
            result["content"] = [self._said() for _ in range(self._number(0, 2))]
        return result

    def _tool(self, number: int) -> Block:
        kind = self._one_of({"type": "string"}, True, {}, {"type": ["null", "string"], "enum": [1]})
        told = {**kind, "description": self._words()} if isinstance(kind, dict) else kind
        properties = {self._words(): told, "items": {"items": {"type": "string"}}}
        schema = {"$schema": self._words(), "type": "object", "properties": properties}
        tool = {"name": f"f{number}", "input_schema": self._one_of({}, {"type": "object"}, schema)}
        return {**tool, "description": self._words()} if self._one_of(True, False) else tool

    def _words(self) -> str:
        """Text with a word of its own."""
        self._num_words += 1
        before, after = self._one_of(*AWKWARD), self._one_of(*AWKWARD)
        return f"{before}w{self._num_words}w{after}"

    def _one_of(self, *choices: Any) -> Any:
        return choices[next(self._choices, 0) % len(choices)]

    def _number(self, least: int, most: int) -> int:
        return least + next(self._choices, 0) % (most - least + 1)
