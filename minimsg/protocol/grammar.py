"""Which event of a stream may follow which: one automaton, for our tests and for others' servers.

    start -> message_start -> (block)* -> message_delta -> message_stop
    block = content_block_start(i) content_block_delta(i)* content_block_stop(i),  i = 0, 1, 2 ...

`ping` may stand anywhere after message_start, `error` anywhere, and ends the stream. A
delta must be one of the open block's type. Unknown types of events, blocks and deltas are
legal (clients ignore them) and change nothing. Takes parsed JSON, not typed events: it is
made to read what may be wrong.
Source: Messages API streaming page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a stream stands; the value completes "the stream ..."."""

    START = "has not started"
    MESSAGE = "is between blocks"
    BLOCK = "has an open block"
    ENDING = "has had its message_delta"
    END = "has ended"


NEXT: Final[dict[tuple[State, str], State]] = {
    (State.START, "message_start"): State.MESSAGE,
    (State.MESSAGE, "content_block_start"): State.BLOCK,
    (State.BLOCK, "content_block_delta"): State.BLOCK,
    (State.BLOCK, "content_block_stop"): State.MESSAGE,
    (State.MESSAGE, "message_delta"): State.ENDING,
    (State.ENDING, "message_delta"): State.ENDING,  # beta APIs send several; the last one counts
    (State.ENDING, "message_stop"): State.END,
} | {
    (state, "ping"): state for state in (State.MESSAGE, State.BLOCK, State.ENDING)
} | {
    (state, "error"): State.END for state in (State.START, State.MESSAGE, State.BLOCK, State.ENDING)
}  # fmt: skip

DELTAS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "redacted_thinking": (),
    "tool_use": ("input_json_delta",),
    "server_tool_use": ("input_json_delta",),
    "mcp_tool_use": ("input_json_delta",),
    "compaction": ("compaction_delta",),
}  # by the type of the block

KNOWN_DELTAS: Final = frozenset(delta for deltas in DELTAS.values() for delta in deltas)
KNOWN: Final = frozenset(kind for _, kind in NEXT)


class StreamGrammar:
    """Reads a stream event by event; `push` and `flush` say what is wrong, or None."""

    def __init__(self) -> None:
        self.state = State.START
        self._num_events = 0
        self._num_blocks = 0
        self._block_type: object = None  # of the last block to open

    def push(self, event: Mapping[str, object]) -> str | None:
        """What is wrong with `event` at this place; the state moves only when nothing is."""
        self._num_events += 1
        kind = str(event.get("type"))
        if kind not in KNOWN and self.state != State.END:
            return None
        following = NEXT.get((self.state, kind))
        if following is None:
            return self._complain(kind, f"the stream {self.state}")
        wrong = self._wrong_index(kind, event.get("index")) or self._wrong_delta(kind, event)
        if wrong is None:
            self.state = following
            if kind == "content_block_start":
                self._num_blocks += 1
                self._block_type = _type(event.get("content_block"))
        return wrong

    def flush(self) -> str | None:
        """What is wrong with ending here."""
        if self.state == State.END:
            return None
        return f"after {self._num_events} events: the stream {self.state} and is cut"

    def _wrong_index(self, kind: str, index: object) -> str | None:
        if not kind.startswith("content_block"):
            return None
        right = self._num_blocks if kind == "content_block_start" else self._num_blocks - 1
        if index == right and isinstance(index, int):
            return None
        return self._complain(kind, f"index {index!r} where {right} is due")

    def _wrong_delta(self, kind: str, event: Mapping[str, object]) -> str | None:
        delta = _type(event.get("delta"))
        allowed = DELTAS.get(str(self._block_type))
        is_known = kind == "content_block_delta" and delta in KNOWN_DELTAS
        if not is_known or allowed is None or delta in allowed:
            return None
        return self._complain(kind, f"{delta} in a block of type {self._block_type}")

    def _complain(self, kind: str, why: str) -> str:
        return f"event {self._num_events}, {kind}: {why}"


def _type(part: object) -> object:
    return part.get("type") if isinstance(part, Mapping) else None


def check(events: Iterable[Mapping[str, object]]) -> str | None:
    """The first thing wrong with a whole stream, or None."""
    grammar = StreamGrammar()
    for event in events:
        wrong = grammar.push(event)
        if wrong is not None:
            return wrong
    return grammar.flush()
