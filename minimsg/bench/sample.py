"""A reply seen by the clock: its events, with the times they came at, as one `Sample`.

Events are read as JSON of a server that may send anything, so that `bench` can measure
a server that is not ours. `run --verbose` shows the same figures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

JsonObject = dict[str, object]


class RequestFailed(ValueError):
    """A request that got no whole reply; the message is the kind that a report counts."""


@dataclass(frozen=True)
class Sample:
    """One reply as its client saw it. Times are seconds since the request was sent."""

    delta_times_s: list[float]  # when each piece of the reply arrived
    total_s: float
    input_tokens: int  # by the server's own usage, as is the next
    output_tokens: int

    @property
    def ttft_s(self) -> float:
        """Time to first token; of an empty reply, to its end."""
        return self.delta_times_s[0] if self.delta_times_s else self.total_s

    @property
    def inter_token_s(self) -> float | None:
        """Mean time between two tokens; None where there are not two."""
        if self.output_tokens < 2 or len(self.delta_times_s) < 2:
            return None
        return (self.delta_times_s[-1] - self.delta_times_s[0]) / (self.output_tokens - 1)

    @property
    def gaps_s(self) -> list[float]:
        """Times between neighbouring pieces: a stall shows here and not in the mean."""
        return [later - earlier for earlier, later in pairwise(self.delta_times_s)]


class SampleBuilder:
    """Folds the events of one reply into a `Sample`."""

    def __init__(self) -> None:
        self.delta_times_s: list[float] = []
        self.usage: dict[str, int] = {}
        self.total_s: float | None = None

    def push(self, event: Mapping[str, object], at_s: float) -> None:
        match event:
            case {"type": "message_start", "message": {"usage": usage}}:
                self._count(usage)
            case {"type": "content_block_delta"}:
                self.delta_times_s.append(at_s)
            case {"type": "message_delta", "usage": usage}:
                self._count(usage)
            case {"type": "message_stop"}:
                self.total_s = at_s
            case {"type": "error"}:
                raise RequestFailed(f"error event: {error_type(event)}")

    def _count(self, usage: object) -> None:
        """Later counts replace earlier ones; absent and null ones do not."""
        if isinstance(usage, dict):
            self.usage |= {name: n for name, n in usage.items() if isinstance(n, int)}

    def sample(self) -> Sample:
        if self.total_s is None:
            raise RequestFailed("stream ended without message_stop")
        prompt = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return Sample(
            delta_times_s=self.delta_times_s,
            total_s=self.total_s,
            input_tokens=sum(self.usage.get(name, 0) for name in prompt),
            output_tokens=self.usage.get("output_tokens", 0),
        )


def error_type(envelope: object) -> str:
    """The type in an error envelope, if it looks like one."""
    match envelope:
        case {"error": {"type": str(kind)}} if re.fullmatch(r"\w{1,40}", kind, re.ASCII):
            return kind
    return "of unknown type"
