"""What the model thought in its latest replies, for clients that do not send it back.

Within the bounds of `latest.py`. Lives on the event loop; what prepares a prompt gets a copy.
How thoughts find their turns: `prompt/replay.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import JsonValue
from pydantic_core import from_json

from minimsg.parsing.segments import (
    CitedSegment,
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.prompt.replay import Remembered, Thought, call_form, digest_of, text_form
from minimsg.server.latest import Latest

MAX_BYTES: Final = 1 << 20  # of a tenant; as a copy it goes to whoever prepares a big body
MAX_TENANTS: Final = 64
ENTRY_BYTES: Final = 128  # about what a digest and its place take


class ThinkingMemory:
    """Thoughts by tenant and conversation."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_tenants: int = MAX_TENANTS) -> None:
        self._kept: Latest[tuple[Thought, ...]] = Latest(
            _size, max_bytes=max_bytes, max_tenants=max_tenants
        )

    def of(self, tenant: str) -> Remembered:
        """A copy of what `tenant` may have back."""
        return dict(self._kept.of(tenant))

    def remember(self, tenant: str, digest: str, thoughts: Sequence[Thought]) -> None:
        """Keep what was thought in the turn that the conversation of `digest` ends with."""
        self._kept.keep(tenant, digest, tuple(thoughts))

    def touch(self, tenant: str, digests: Iterable[str]) -> None:
        """These were used: they go later."""
        for digest in digests:
            self._kept.touch(tenant, digest)


def _size(thoughts: Sequence[Thought]) -> int:
    return sum(len(thought.text.encode()) + ENTRY_BYTES for thought in thoughts)


class Listener:
    """Hears a reply's segments and tells what to remember of it."""

    def __init__(self) -> None:
        self._thoughts: list[tuple[int, list[str]]] = []
        self._said: list[tuple[str | None, list[str]]] = []  # tool or None, and its pieces
        self._last: type[Segment] | None = None

    def push(self, segment: Segment) -> None:
        """One more segment, in order."""
        is_new = type(segment) is not self._last
        match segment:
            case ThinkingSegment(text):
                if is_new:
                    self._thoughts.append((self._num_said, []))
                self._thoughts[-1][1].append(text)
            case TextSegment(text):
                if is_new:
                    self._said.append((None, []))
                self._said[-1][1].append(text)
            case CitedSegment(text):
                self._said.append((None, [text]))
            case ToolCallStart(name):
                self._said.append((name, []))
            case ToolCallInput(fragment):
                self._said[-1][1].append(fragment)
            case ToolCallEnd():
                pass
        self._last = type(segment)

    @property
    def thoughts(self) -> list[Thought]:
        """What was thought, each with its place."""
        return [Thought(place, "".join(pieces)) for place, pieces in self._thoughts]

    def digest(self, before: str) -> str:
        """Of the conversation that began with `before` and goes on with this reply."""
        return digest_of(before, "assistant", map(_form, self._said))

    @property
    def _num_said(self) -> int:
        return sum(_form(each) is not None for each in self._said)


def _form(said: tuple[str | None, list[str]]) -> JsonValue:
    name, pieces = said
    text = "".join(pieces)
    if name is None:
        return text_form(text)
    return call_form(name, from_json(text or "{}", allow_partial=True))
