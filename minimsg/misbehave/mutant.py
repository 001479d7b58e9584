"""What a mutant is: a name, the rule that it breaks, and how it changes what passes by.

`topic` is a pattern of ids of conformance cases, for those who keep the score; nothing here
reads it. A mutant changes what it is given in place or returns something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# Whatever JSON passes by; a mutant knows what it looks for.
Json = Any
Events = list[dict[str, Any]]


@dataclass
class Asked:
    """A request on its way to the server."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body as a JSON object; `{}` where it is none."""
        return _object(self.body)

    def put(self, value: Json) -> None:
        """Replace the body."""
        self.body = json.dumps(value).encode()


@dataclass
class Answered:
    """An answer on its way back, whole: a stream's body is its frames."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body as a JSON object; `{}` where it is none."""
        return _object(self.body)

    def put(self, value: Json) -> None:
        """Replace the body."""
        self.body = json.dumps(value).encode()


@dataclass(frozen=True)
class Mutant:
    """One thing done wrong. `events` sees the parsed stream, `frames` its bytes afterwards."""

    name: str
    title: str
    topic: str
    request: Callable[[Asked], None] | None = None
    answer: Callable[[Asked, Answered], None] | None = None
    events: Callable[[Asked, Events], Events] | None = None
    frames: Callable[[bytes], bytes] | None = None


def mutants(kind: str, topics: Mapping[Callable[..., Any], str]) -> list[Mutant]:
    """Functions of one module as mutants: the name is the function's, the title its docstring.

    `kind` is the field of `Mutant` that they are.
    """
    return [
        Mutant(_name(change), (change.__doc__ or "").rstrip("."), topic, **{kind: change})
        for change, topic in topics.items()
    ]


def _name(change: Callable[..., Any]) -> str:
    return change.__name__.replace("_", "-")


def _object(body: bytes) -> Json:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
