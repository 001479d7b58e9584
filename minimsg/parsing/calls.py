"""What all formats of tool calls share: the tools, how a call is read, what a format is.

A format says which tags begin and end a call and reads what stands between. It sees
characters, one at a time, and no text around calls: that is `markup.py`, which asks it.
The formats: `hermes.py`, `qwen_xml.py`, `llama_json.py`, `json_call.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from pydantic import JsonValue

from minimsg.parsing.segments import Segment


@dataclass(frozen=True)
class CallableTool:
    """A tool that the model may call, as far as reading a call needs it."""

    input_schema: Mapping[str, JsonValue] = field(default_factory=dict)
    is_eager: bool = False  # `eager_input_streaming`: raw fragments, not whole parameters
    is_held: bool = False  # to its schema, by a grammar that has it written in one way


Tools = Mapping[str, CallableTool]


class Outcome(Enum):
    """What a character is to the reader of a call. After DONE and BROKEN it reads no more."""

    MAYBE = auto()  # part of a call if it becomes one, else of the text
    CALL = auto()  # part of a call that has started, or of what surrounds it: never text
    DONE = auto()  # not read: what was MAYBE is text, and so may this be
    BROKEN = auto()  # not read: the call had to be closed here, and nothing counts up to a tag


class CallReader(Protocol):
    """Reads what follows an opening tag: one call, or several in one envelope."""

    def push(self, character: str) -> Outcome:
        """What `character` is."""

    def take(self) -> list[Segment]:
        """The segments that are certain and were not taken yet."""

    def flush(self, *, is_cut: bool) -> list[Segment]:
        """The last segments, now that no more text comes: see `Parser.flush`."""


class Bare(Enum):
    """Where JSON without a tag may begin a call."""

    NOWHERE = auto()
    START = auto()  # of the reply, or right after a tag
    LINE = auto()  # at the start of one


@dataclass(frozen=True)
class Format:
    """A way of writing tool calls."""

    reader: Callable[[str, Tools], CallReader]  # for what follows an opening
    openings: tuple[str, ...]  # none begins another
    closings: tuple[str, ...]  # never shown, but after an opening that turned out to be text
    bare: Bare = Bare.NOWHERE  # where "{" and "[" open too; the reader then gets them first
