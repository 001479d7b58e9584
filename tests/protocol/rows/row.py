"""`Row`, one rule of a request's body with its verdicts, and words to write bodies with.

A verdict is `OK`, or the message of the 400 that the request is answered with. The
verdicts of profile `strict` can differ by API version.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

Json = dict[str, JsonValue]
OK: Final = "OK"
EXTRA: Final = "Extra inputs are not permitted"


@dataclass(frozen=True)
class Row:
    """What `fields`, put into a request that says hi, are answered with."""

    meaning: str
    fields: Json
    every: str | None = None  # the verdict in both profiles
    compat: str | None = None
    strict: str | None = None
    old: str | None = None  # strict, by version
    new: str | None = None
    count: str | None = None  # compat, of count_tokens, where it differs
    betas: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    in_batch: bool = False  # whether it is one of a message batch
    drops: bool = False  # whether the server leaves out tools that it cannot run
    error_code: str | None = None
    unheeded: tuple[str, ...] = field(default=())  # of compat, if it is OK

    def verdict(self, profile: str, version: str) -> str:
        """What a request of this profile and version is answered with."""
        by_version = self.new if version == "2026-10-21" else self.old
        given = (
            [self.compat, self.every]
            if profile == "compat"
            else [by_version, self.strict, self.every]
        )
        return next(verdict for verdict in given if verdict is not None)


def text(value: JsonValue = "x", **fields: JsonValue) -> Json:
    return {"type": "text", "text": value, **fields}


def user(*blocks: JsonValue) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: JsonValue) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def system(*blocks: JsonValue, **fields: JsonValue) -> Json:
    return {"role": "system", "content": list(blocks), **fields}


def call(id: str = "t1", name: str = "f", **fields: JsonValue) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **fields}


def result(id: str = "t1", *content: JsonValue, **fields: JsonValue) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": list(content), **fields}


def server_call(id: str = "srvtoolu_1", name: str = "web_search") -> Json:
    return {"type": "server_tool_use", "id": id, "name": name, "input": {}}


def search_hits(id: str = "srvtoolu_1") -> Json:
    return {"type": "web_search_tool_result", "tool_use_id": id, "content": []}


def tool(name: str = "f", **fields: JsonValue) -> Json:
    return {"name": name, "input_schema": {"type": "object"}, **fields}


def schema(**keywords: JsonValue) -> Json:
    """A tool whose input schema has these keywords besides its type."""
    return {"name": "f", "input_schema": {"type": "object", **keywords}}


def document(source: Json | None = None, **fields: JsonValue) -> Json:
    own: Json = {"type": "text", "media_type": "text/plain", "data": "d"}
    return {"type": "document", "source": source or own, **fields}


def search_result(**fields: JsonValue) -> Json:
    return {"type": "search_result", "source": "s", "title": "t", "content": [text()], **fields}


def image(source: Json | None = None) -> Json:
    own: Json = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    return {"type": "image", "source": source or own}


def ask(*blocks: JsonValue) -> Json:
    """A request in which the user sends these blocks."""
    return {"messages": [user(*blocks)]}


def talk(*messages: JsonValue) -> Json:
    return {"messages": list(messages)}


def after_call(*blocks: JsonValue) -> Json:
    """A request in which the user answers the call t1 of tool f with these blocks."""
    return {"messages": [HI, assistant(call()), user(*blocks)], "tools": [tool()]}


HI: Final = user(text("hi"))
SIGNED: Final[Json] = {"type": "thinking", "thinking": "hm", "signature": "s"}
PDF: Final[Json] = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}
MARK: Final[Json] = {"type": "ephemeral"}
SHORT: Final[Json] = {"type": "ephemeral", "ttl": "5m"}
LONG: Final[Json] = {"type": "ephemeral", "ttl": "1h"}
CITED: Final[Json] = {
    "type": "char_location",
    "cited_text": "d",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
}
