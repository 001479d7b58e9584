"""The latest prompts of clients that ask why the cache was missed, and what has changed since.

A prompt is remembered if its request has `diagnostics`, whose null begins such a chain.
Within the bounds of `latest.py`. Lives on the event loop. Which parts are compared:
`prompt/fingerprint.py`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from minimsg.prompt.fingerprint import Fingerprint
from minimsg.protocol.diagnosis import Changed, Diagnosis
from minimsg.server.latest import Latest

MAX_BYTES: Final = 4 << 20  # of a tenant: a million ids
MAX_TENANTS: Final = 64
ENTRY_BYTES: Final = 512  # about what digests and their place take

Change = Literal["tools_changed", "system_changed", "messages_changed"]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a request with `diagnostics` brings to compare."""

    previous: str | None  # the id of an earlier message
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Past:
    """A prompt that was answered."""

    ids: array[int]  # empty if there were too many
    num_cached: int  # of them up to the last cache mark
    tools: str
    system: str
    end: str

    @property
    def num_bytes(self) -> int:
        """What it takes to remember it."""
        return len(self.ids) * self.ids.itemsize + ENTRY_BYTES


class PastPrompts:
    """Prompts by tenant and message."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_tenants: int = MAX_TENANTS) -> None:
        self._max_bytes = max_bytes
        self._kept: Latest[Past] = Latest(
            lambda past: past.num_bytes, max_bytes=max_bytes, max_tenants=max_tenants
        )

    def diagnose(self, tenant: str, asking: Asking, ids: Sequence[int]) -> Diagnosis:
        """What of the prompt `ids` has changed since the earlier message."""
        if asking.previous is None:
            return {"cache_miss_reason": None}
        past = self._kept.of(tenant).get(asking.previous)
        if past is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        if not past.ids:
            return {"cache_miss_reason": {"type": "unavailable"}}
        return {"cache_miss_reason": _reason(past, asking.fingerprint, array("I", ids))}

    def remember(
        self, tenant: str, message_id: str, asking: Asking, ids: Sequence[int], num_cached: int
    ) -> None:
        """Keep what the message `message_id` answers."""
        known, kept = asking.fingerprint, array("I", ids)
        if len(kept) * kept.itemsize + ENTRY_BYTES > self._max_bytes:
            kept = array("I")
        past = Past(kept, num_cached, known.tools, known.system, known.end)
        self._kept.keep(tenant, message_id, past)


def _reason(past: Past, now: Fingerprint, ids: array[int]) -> Changed | None:
    num_common = _num_common(past.ids, ids)
    if past.tools != now.tools:
        change: Change = "tools_changed"
    elif past.system != now.system:
        change = "system_changed"
    elif past.end not in now.messages or num_common < past.num_cached:
        change = "messages_changed"
    else:
        return None
    return {"type": change, "cache_missed_input_tokens": len(ids) - num_common}


def _num_common(before: array[int], after: array[int]) -> int:
    """How many ids they begin with alike; halves are compared whole, which is fast."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
