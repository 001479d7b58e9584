"""What a prompt cache must know, as plain tuples of ids: no hash, no node, no reference count.

Listens to the evictions and to the clock of a real one; whatever is asked of that is compared
with what is here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from minimsg.engine.prefix import Chain, Node
from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.types import CacheMark, GenerationRequest, Sequence

# A tenant, and each id with the part of an image that it stands for, if it does.
Prefix = tuple[str, tuple[object, ...]]


@dataclass
class Kept:
    """An entry: how long each use of it counts, and until when it lives."""

    ttl_s: int
    until: float


class CacheOracle:
    """`slots`: what is written where. `published` and `kept`: the full pages and the entries
    that must be found.
    """

    def __init__(self, cache: PromptCache) -> None:
        self.cache = cache
        self.slots: dict[int, Prefix] = {}  # every id up to that of the slot
        self.published: set[Prefix] = set()
        self.kept: dict[Prefix, Kept] = {}
        self._publish, self._write = cache.publish, cache.write
        cache.publish = self.publish  # type: ignore[method-assign]
        cache.write = self.write  # type: ignore[method-assign]
        self._evict = cache.index.evict
        self._withdraw = cache.index.withdraw
        self._find = cache.entries.find
        self._expire = cache.entries.expire
        cache.index.evict = self.evict  # type: ignore[method-assign]
        cache.index.withdraw = self.withdraw  # type: ignore[method-assign]
        cache.entries.find = self.find  # type: ignore[method-assign]
        cache.entries.expire = self.expire  # type: ignore[method-assign]

    def num_found(self, request: GenerationRequest) -> int:
        """How many ids of a prompt lie in published pages; the last id never counts."""
        ids, size = list(request.prompt_ids), self.cache.page_size
        for length in range(size, len(ids), size):
            if meaning(request, ids, length) not in self.published:
                return length - size
        return (len(ids) - 1) // size * size

    def publish(self, sequence: Sequence) -> None:
        """Full pages that are computed are everybody's, unless they follow one in doubt."""
        size, num_full = self.cache.page_size, sequence.num_computed // self.cache.page_size
        table = sequence.page_table[:num_full]
        trusted = list(takewhile(lambda page: not self.is_withdrawn(page), table))
        for place in range(len(trusted)):
            self.published.add(meaning(sequence.request, sequence.ids, (place + 1) * size))
        self._publish(sequence)

    def write(self, sequence: Sequence) -> None:
        """A prompt is computed: its marks make entries, if their pages can be found."""
        request, size = sequence.request, self.cache.page_size
        for mark in request.marks:
            num_paged = mark.num_tokens // size * size
            if num_paged and meaning(request, sequence.ids, num_paged) not in self.published:
                continue
            prefix = meaning(request, sequence.ids, mark.num_tokens)
            known = self.kept.get(prefix)
            if known is None or known.until <= self.cache.entries.clock():
                known = Kept(mark.ttl_s, 0.0)
            ttl_s = max(known.ttl_s, mark.ttl_s)
            self.kept[prefix] = Kept(ttl_s, max(known.until, sequence.since + ttl_s))
        self._write(sequence)

    def find(self, chain: Chain, num_matched: int, marks: Iterable[CacheMark]) -> int:
        """The longest entry that lives, and no other."""
        (request,) = (each.request for each, own in self.cache._chains.items() if own is chain)
        lengths = {length for mark in marks for length in (mark.num_tokens, *mark.earlier)}
        found = self._find(chain, num_matched, marks)
        now, ids = self.cache.entries.clock(), list(request.prompt_ids)
        alive = [length for length in lengths if meaning(request, ids, length) in self.kept]
        assert found == max(alive, default=0)
        if found:
            kept = self.kept[meaning(request, ids, found)]
            kept.until = max(kept.until, now + kept.ttl_s)
        return found

    def expire(self) -> float:
        """Entries whose time is over are gone."""
        now = self._expire()
        self.kept = {prefix: kept for prefix, kept in self.kept.items() if kept.until > now}
        return now

    def evict(self) -> Node | None:
        """A page that is given away takes the entries with it that end in it."""
        node = self._evict()
        if node is not None:
            gone = self._forget(node)
            assert not any(starts_with(each, gone) for each in self.published), "not a leaf"
        return node

    def withdraw(self, chain: Chain, stop: int) -> list[Node]:
        """Pages that are not to be trusted take with them what follows them."""
        nodes = self._withdraw(chain, stop)
        for gone in [self._forget(node) for node in nodes]:
            assert not any(starts_with(each, gone) for each in self.published), "found behind it"
        return nodes

    def _forget(self, node: Node) -> Prefix:
        gone = self.slots[(node.page + 1) * self.cache.page_size - 1]
        self.published.remove(gone)
        for each in [each for each in self.kept if starts_with(each, gone)]:
            del self.kept[each]
        return gone

    def is_withdrawn(self, page: int) -> bool:
        """Whether a page was published once, and is only used to its end."""
        index = self.cache.index
        return page in index._by_page and index.published(page) is None


def meaning(request: GenerationRequest, ids: list[int], length: int) -> Prefix:
    """What the first `length` ids say to a model."""
    parts: list[object] = list(ids[:length])
    for image in request.images:
        for place in range(image.start, min(image.stop, length)):
            parts[place] = parts[place], image.digest, place - image.start
    return request.tenant, tuple(parts)


def starts_with(one: Prefix, other: Prefix) -> bool:
    """Whether `one` is `other`, or continues it."""
    return one[0] == other[0] and one[1][: len(other[1])] == other[1]
