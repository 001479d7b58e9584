"""Requests of real clients, as they were recorded, sent again.

A recording keeps method, path, headers and body of one request; its long texts are
replaced. Knows how to read and replay one; not what its answer should be:
`test_recordings.py`. Requests written by us in the same shape: `coding_requests.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from minimsg.protocol.grammar import check
from minimsg.protocol.sse import Decoder

from .running import Json, Running

# What the connection of the replay has of its own.
HOP_HEADERS = frozenset({"host", "content-length", "accept-encoding", "connection"})


@dataclass(frozen=True)
class Recording:
    """One request of a client."""

    name: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: Json | None

    @classmethod
    def read(cls, file: Path) -> Recording:
        """The recording in `file`."""
        data = json.loads(file.read_text("utf-8"))
        headers = tuple((name, value) for name, value in data["headers"])
        return cls(file.stem, data["method"], data["path"], headers, data["body"])

    @property
    def counts(self) -> bool:
        """Whether it asks for the number of tokens, not for a reply."""
        return "/count_tokens" in self.path


@dataclass(frozen=True)
class Answer:
    """What came back; `events` of a stream, `data` of anything else in JSON."""

    status: int
    data: Json
    events: tuple[Json, ...] = ()

    @property
    def message(self) -> str:
        """The words of an error; empty for anything else."""
        error = self.data.get("error")
        return str(error["message"]) if isinstance(error, dict) else ""

    @property
    def kind(self) -> str:
        """The type of an error; empty for anything else."""
        error = self.data.get("error")
        return str(error["type"]) if isinstance(error, dict) else ""

    @property
    def input_tokens(self) -> int:
        """The answer to a count."""
        count = self.data["input_tokens"]
        assert isinstance(count, int)
        return count

    @property
    def text(self) -> str:
        """The reply's text, streamed or not."""
        blocks = self.data.get("content", [])
        assert isinstance(blocks, list)
        deltas = [event["delta"] for event in self.events if "delta" in event]
        parts = [part for part in (*blocks, *deltas) if isinstance(part, dict)]
        return "".join(str(part["text"]) for part in parts if "text" in part)


async def replay(running: Running, recording: Recording) -> Answer:
    """Send what was recorded; a stream must be one that the grammar allows."""
    headers = [each for each in recording.headers if each[0].lower() not in HOP_HEADERS]
    content = None if recording.body is None else json.dumps(recording.body).encode()
    async with running.session.request(
        recording.method, running.url + recording.path, headers=headers, data=content
    ) as response:
        raw = await response.read()
        if response.content_type == "text/event-stream":
            return Answer(response.status, {}, _events(recording.name, raw))
        return Answer(response.status, json.loads(raw) if raw else {})


def _events(name: str, raw: bytes) -> tuple[Json, ...]:
    decoder = Decoder()
    frames = decoder.push(raw) + decoder.flush()
    events: tuple[Json, ...] = tuple(json.loads(frame.data) for frame in frames)
    assert check(events) is None, name
    assert [frame.event for frame in frames] == [event["type"] for event in events], name
    return events
