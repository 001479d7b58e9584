"""The pages of sequences: shared where the index has them, taken from the pool where not.

The scheduler asks here for pages and says here what was computed. When pages are short,
what nobody uses goes first (`prefix.py`), then the pins of entries (`entries.py`); only
then must the scheduler take pages from a sequence. Knows sequences and their pages; not
who runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from minimsg.engine.entries import Entries
from minimsg.engine.pages import PagePool
from minimsg.engine.prefix import Chain, PrefixIndex
from minimsg.engine.types import HOUR_S, CacheCounts, CacheMark, Sequence


class PromptCache:
    """Hands out pages, and takes them back.

    Invariant (`check`): the first `num_published` pages of a sequence are published, the
    others are its own.
    """

    def __init__(
        self, pool: PagePool, index: PrefixIndex, entries: Entries, *, is_on: bool = True
    ) -> None:
        self.pool = pool
        self.index = index
        self.entries = entries
        self.is_on = is_on  # off: nothing is published, so nothing is found
        self._chains: dict[Sequence, Chain] = {}

    @property
    def page_size(self) -> int:
        """Slots a page."""
        return self.index.page_size

    def open(self, sequence: Sequence) -> CacheCounts:
        """Begin with a new sequence: hold what the cache has of it, and say how much that is."""
        request = sequence.request
        chain = self.index.chain(request.tenant, sequence.ids, request.images)
        self._chains[sequence] = chain
        sequence.since = self.entries.clock()
        try:
            self.share(sequence)
        except BaseException:
            self.close(sequence)
            raise
        assert sequence.counts is not None
        return sequence.counts

    def begin(self, sequence: Sequence) -> None:
        """A first step of it is computed: what it was said to find stands."""
        if not sequence.is_started:
            sequence.is_started, sequence.num_taken = True, sequence.num_published

    def close(self, sequence: Sequence) -> None:
        """The sequence has ended."""
        self.release(sequence)
        del self._chains[sequence]

    def share(self, sequence: Sequence) -> None:
        """Take over the pages that are published where a sequence would compute next.

        What others want of its rows is left to compute.
        """
        if sequence.counts is None:
            sequence.counts = self._count(sequence)
        place = sequence.num_published
        if place * self.page_size != sequence.num_computed:
            return  # in the midst of a page of its own, or behind one that could not be published
        if place and self.index.published(sequence.page_table[place - 1]) is None:
            return  # after one that was withdrawn
        last = num_takeable(sequence) // self.page_size
        for node in self.index.match(self._chains[sequence], place, last):
            self.index.use(node)
            self._replace(sequence, sequence.num_published, node.page)
            sequence.num_computed += self.page_size
            sequence.num_published += 1
        self._note_reuse(sequence)

    def provide(self, sequence: Sequence, num_slots: int) -> bool:
        """Grow a page table to `num_slots` slots, or say that the pages are not there."""
        num_pages = -(-num_slots // self.page_size) - len(sequence.page_table)
        while (pages := self.pool.allocate(max(0, num_pages))) is None:
            self.entries.expire()  # a pin that is over yields before what others may use again
            if not self._evict() and not self.entries.unpin_oldest():
                return False
        sequence.page_table += pages
        return True

    def spare(self, sequence: Sequence, num_slots: int) -> int:
        """Grow a page table towards `num_slots` slots with pages that nobody uses or has pinned.

        How many of the slots there are then.
        """
        while num_slots > (num_there := len(sequence.page_table) * self.page_size):
            pages = self.pool.allocate(1)
            if pages is not None:
                sequence.page_table += pages
            elif not self._evict():
                return num_there
        return num_slots

    def trim(self, sequence: Sequence, num_slots: int) -> None:
        """Take back a sequence's pages after its first `num_slots` slots, if it has any."""
        num_pages = -(-num_slots // self.page_size)
        assert num_pages >= sequence.num_published, "what is published belongs to what is computed"
        self.pool.free(sequence.page_table[num_pages:])
        del sequence.page_table[num_pages:]

    def publish(self, sequence: Sequence) -> None:
        """Let others use the pages that a sequence has filled, or use theirs if they came first."""
        chain = self._chains[sequence]
        sequence.num_reached = max(sequence.num_reached, sequence.num_computed)
        if sequence.watched is not None and sequence.watched.is_patched:
            return
        while self.is_on and sequence.num_published < sequence.num_computed // self.page_size:
            place = sequence.num_published
            sequence.num_taken = min(sequence.num_taken, place)
            node = self.index.publish(chain, place, sequence.page_table)
            if node is None:
                return
            if node.page != sequence.page_table[place]:
                self.index.use(node)
                self._replace(sequence, place, node.page)
            sequence.num_published += 1

    def write(self, sequence: Sequence) -> None:
        """Keep the entries of a prompt that is computed."""
        if not self.is_on:
            return
        chain = self._chains[sequence]
        for mark in sequence.request.marks:
            num_pages = mark.num_tokens // self.page_size
            nodes = self.index.match(chain, 0, num_pages)
            if len(nodes) == num_pages:
                self.entries.write(chain, nodes, mark, sequence.since)

    def release(self, sequence: Sequence) -> None:
        """Give back the pages of a sequence; what it finds of them later is counted then."""
        self.index.release(sequence.page_table)
        sequence.page_table = []
        sequence.num_computed = sequence.num_published = 0
        if not sequence.is_started:
            sequence.counts, sequence.num_reached = None, 0

    def distrust(self, sequence: Sequence) -> None:
        """Let nobody find what a sequence has read or computed."""
        for node in self.index.withdraw(self._chains[sequence], sequence.num_published):
            self.entries.forget(node)

    def is_trusted(self, sequence: Sequence) -> bool:
        """Whether all that a sequence has taken over can be found still."""
        return all(map(self.index.published, sequence.page_table[: sequence.num_published]))

    def next_pages(self, sequence: Sequence, count: int) -> list[bytes]:
        """The keys of the full pages in which the next `count` ids of a sequence lie.

        None of them where it computes for itself, whatever others have.
        """
        if sequence.num_computed >= num_takeable(sequence):
            return []
        chain, start = self._chains[sequence], sequence.num_computed
        stop = min(-(-(start + count) // self.page_size), chain.num_full)
        return [chain.key(place + 1) for place in range(start // self.page_size, stop)]

    def check(self, sequences: Iterable[Sequence]) -> None:
        """Assert every invariant."""
        self.entries.check()
        held: dict[int, int] = {}
        for sequence in sequences:
            chain = self._chains[sequence]
            for place, page in enumerate(sequence.page_table):
                held[page] = held.get(page, 0) + 1
                is_published = place < sequence.num_published
                assert is_published or self.pool.references(page) == 1, "a page is not its own"
            nodes = self.index.match(chain, 0, sequence.num_published)
            pages = sequence.page_table[: sequence.num_published]
            for node, page in zip(nodes, pages, strict=False):
                is_withdrawn = self.index.published(page) is None
                assert node.page == page or is_withdrawn, "what is shared is not what is there"
        assert all(
            self.pool.references(page) == held.get(page, 0) for page in range(self.pool.num_pages)
        )

    def _count(self, sequence: Sequence) -> CacheCounts:
        """What the marks of a prompt read and write, by the entries that there are now."""
        marks, chain = sequence.request.marks, self._chains[sequence]
        if not marks or not self.is_on:
            return CacheCounts()
        num_matched = len(self.index.match(chain, 0, chain.num_full))
        return split_counts(marks, self.entries.find(chain, num_matched, marks))

    def _evict(self) -> bool:
        node = self.index.evict()
        if node is not None:
            self.entries.forget(node)
        return node is not None

    def _replace(self, sequence: Sequence, place: int, page: int) -> None:
        """Put a published page in the place of the sequence's own, if it has one there."""
        own = sequence.page_table[place : place + 1]
        sequence.page_table[place : place + 1] = [page]
        self.pool.free(own)

    def _note_reuse(self, sequence: Sequence) -> None:
        """Count tokens of the prompt that need not be computed, and were not before either."""
        num_reused = sequence.num_computed - sequence.num_reached
        if sequence.num_generated == 0 and num_reused > 0:
            assert sequence.counts is not None  # counted first
            reused = sequence.counts.reused + num_reused
            sequence.counts = replace(sequence.counts, reused=reused)
        sequence.num_reached = max(sequence.num_reached, sequence.num_computed)


def num_takeable(sequence: Sequence) -> int:
    """How many of a sequence's ids others may have computed: the logits of the last are wanted."""
    known = len(sequence.ids) - 1
    return known if sequence.watched is None else min(known, sequence.watched.first)


def split_counts(marks: tuple[CacheMark, ...], read: int) -> CacheCounts:
    """What is written after the first `read` tokens: to the last mark of an hour, then the rest."""
    hour = max([mark.num_tokens for mark in marks if mark.ttl_s >= HOUR_S], default=0)
    last = max(mark.num_tokens for mark in marks)
    written_1h = max(0, hour - read)
    return CacheCounts(read, max(0, last - read) - written_1h, written_1h)
