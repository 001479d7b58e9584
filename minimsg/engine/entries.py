"""Cache entries: what clients have marked to be kept, for how long, and what that costs.

An entry is the first `num_tokens` ids of a prompt. It lives for its time to live after
its last use, and as long as its full pages are published; while it is pinned they cannot
be evicted. Pins hold a bounded share of the pool, and under pressure the pin used longest
ago yields first: then the entry lives on only as long as nobody needs its pages.
Source: Messages API reference, prompt caching. Knows chains, nodes and a clock; no
sequence and no page of one (`prompt_cache.py`).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from minimsg.engine.prefix import Chain, Node, PrefixIndex
from minimsg.engine.types import CacheMark

MAX_ENTRIES: Final = 20_000  # a busy hour's worth; those without a full page cost no pages
SWEEP_S: Final = 1.0  # so long may a pin outlive its entry


@dataclass(slots=True, eq=False)
class Entry:
    """What was read or written up to a mark; `node` is its last full page, if it fills any."""

    key: bytes  # of all its ids
    node: Node | None
    ttl_s: int
    expires_at: float
    is_pinned: bool = False


class Entries:
    """The entries of all tenants.

    Invariant (`check`): every entry's node is in the index; pinned nodes are at most
    `pin_budget` pages.
    """

    def __init__(
        self,
        index: PrefixIndex,
        pin_budget: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index = index
        self.pin_budget = pin_budget
        self.clock = clock
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()  # the one used last at the end
        self._pinned: OrderedDict[bytes, Entry] = OrderedDict()  # in the same order
        self._next_sweep = clock()

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, chain: Chain, num_matched: int, marks: Iterable[CacheMark]) -> int:
        """The length of the longest entry that a mark looks for, which is used by that; or 0.

        The first `num_matched` pages of `chain` are published.
        """
        now = self.expire()
        lengths = {length for mark in marks for length in (mark.num_tokens, *mark.earlier)}
        for length in sorted(lengths, reverse=True):
            num_pages = length // chain.page_size
            entry = self._alive(_key(chain, length)) if num_pages <= num_matched else None
            if entry is not None:
                self._refresh(entry, entry.ttl_s, now)
                return length
        return 0

    def write(self, chain: Chain, nodes: list[Node], mark: CacheMark, since: float) -> None:
        """Keep the entry of a mark, whose full pages are `nodes`, from the time `since` on."""
        key = _key(chain, mark.num_tokens)
        node = nodes[-1] if nodes else None
        entry = self._alive(key)
        if entry is None:
            entry = Entry(key, node, mark.ttl_s, since)
            self._entries[key] = entry
            if node is not None:
                node.entries.add(key)
        self._refresh(entry, max(entry.ttl_s, mark.ttl_s), since)
        if len(nodes) <= self.pin_budget:
            self._pin(entry)
        while self.index.num_pinned > self.pin_budget:
            self.unpin_oldest()
        if len(self._entries) > MAX_ENTRIES:
            self._drop(next(iter(self._entries.values())))

    def expire(self) -> float:
        """Drop the entries whose time is over, looking now and then; the time now."""
        now = self.clock()
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP_S
            for entry in [each for each in self._entries.values() if each.expires_at <= now]:
                self._drop(entry)
        return now

    def unpin_oldest(self) -> bool:
        """Take the pin of the entry that was used longest ago, or say that there is none."""
        if not self._pinned:
            return False
        _, entry = self._pinned.popitem(last=False)
        entry.is_pinned = False
        self.index.unpin(entry.node)
        return True

    def forget(self, node: Node) -> None:
        """Drop the entries that end in or after a page that was evicted."""
        for key in list(node.entries):
            self._drop(self._entries[key])

    def _alive(self, key: bytes) -> Entry | None:
        """The entry of a key; one whose time is over is dropped."""
        entry = self._entries.get(key)
        if entry is None or entry.expires_at > self.clock():
            return entry
        self._drop(entry)
        return None

    def _pin(self, entry: Entry) -> None:
        if not entry.is_pinned and entry.node is not None:
            self.index.pin(entry.node)
            entry.is_pinned = True
            self._pinned[entry.key] = entry

    def _refresh(self, entry: Entry, ttl_s: int, since: float) -> None:
        """It was used: its time begins anew."""
        entry.ttl_s = ttl_s
        entry.expires_at = max(entry.expires_at, since + ttl_s)
        self._entries.move_to_end(entry.key)
        if entry.is_pinned:
            self._pinned.move_to_end(entry.key)

    def _drop(self, entry: Entry) -> None:
        del self._entries[entry.key]
        if entry.node is not None:
            entry.node.entries.remove(entry.key)
        if entry.is_pinned:
            del self._pinned[entry.key]
            self.index.unpin(entry.node)

    def check(self) -> None:
        """Assert every invariant."""
        self.index.check()
        assert self.index.num_pinned <= self.pin_budget, "pins hold more than their budget"
        assert list(self._pinned) == [key for key, e in self._entries.items() if e.is_pinned]
        for key, entry in self._entries.items():
            if entry.node is not None:
                assert self.index.is_published(entry.node), "an entry outlived its pages"
                assert key in entry.node.entries


def _key(chain: Chain, length: int) -> bytes:
    """Of the first `length` ids of a chain: its full pages, and the ids after them."""
    num_pages = length // chain.page_size
    return chain.key(num_pages) + chain.content(num_pages * chain.page_size, length)
