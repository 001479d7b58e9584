"""The prefix index against a dict of prefixes: who finds which page, and what goes first.

The oracle knows no hash and no node: a page is found if its tenant has published these very
ids, all before them and the images they stand for, and the page was not given away since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine.pages import PagePool
from minimsg.engine.prefix import Chain, Node, PrefixIndex
from minimsg.engine.types import ImageSpan

PAGE_SIZE = 2
NUM_PAGES = 7
IDS = st.lists(st.integers(1, 2), min_size=1, max_size=9)
IMAGES = st.sampled_from(
    ((), (ImageSpan(2, 5, b"cat"),), (ImageSpan(2, 5, b"dog"),), (ImageSpan(3, 6, b"cat"),))
)

# A tenant, and each id with what it stands for beside itself.
Prefix = tuple[str, tuple[object, ...]]


@dataclass(eq=False)
class Reader:
    """Someone who holds the pages of one text, the first ones published."""

    tenant: str
    ids: list[int]
    chain: Chain
    images: tuple[ImageSpan, ...]
    pages: list[int] = field(default_factory=list)

    def prefix(self, num_pages: int) -> Prefix:
        """What the first pages hold."""
        meanings: list[object] = list(self.ids[: num_pages * PAGE_SIZE])
        for image in self.images:
            for place in range(image.start, min(image.stop, len(meanings))):
                meanings[place] = meanings[place], image.digest, place - image.start
        return self.tenant, tuple(meanings)


class PrefixMachine(RuleBasedStateMachine):
    """Readers come, read, write, pin and leave; `published` is what a look-up must find."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(NUM_PAGES)
        self.index = PrefixIndex(self.pool, PAGE_SIZE)
        self.readers: list[Reader] = []
        self.pinned: list[Node] = []
        self.published: dict[Prefix, int] = {}
        self.used_last: list[Prefix] = []  # the longest ago first; children before parents

    @precondition(lambda self: len(self.readers) < 4)
    @rule(tenant=st.sampled_from("ab"), ids=IDS, images=IMAGES)
    def open(self, tenant: str, ids: list[int], images: tuple[ImageSpan, ...]) -> None:
        reader = Reader(tenant, ids, self.index.chain(tenant, ids, images), images)
        found = self.index.match(reader.chain, 0, reader.chain.num_full)
        assert [node.page for node in found] == self.expected(reader)
        for node in found:
            self.index.use(node)
            reader.pages.append(node.page)
        self.readers.append(reader)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        """Compute the next page of a reader; another's is taken where there is one."""
        reader = data.draw(st.sampled_from(self.readers))
        place = len(reader.pages)
        pages = self.pool.allocate(1) if place < reader.chain.num_full else None
        if pages is None:
            return
        node = self.index.publish(reader.chain, place, [*reader.pages, *pages])
        assert node is not None
        known = self.published.setdefault(reader.prefix(place + 1), pages[0])
        assert node.page == known
        if known != pages[0]:
            self.index.use(node)
            self.pool.free(pages)
        reader.pages.append(known)

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), id=st.integers(1, 2))
    def write(self, data: st.DataObject, id: int) -> None:
        data.draw(st.sampled_from(self.readers)).ids.append(id)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        self.readers.remove(reader)
        self.index.release(reader.pages)
        self.note_use(reader.prefix(n) for n in range(len(reader.pages), 0, -1))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        for node in self.index.match(reader.chain, 0, len(reader.pages))[-1:]:
            self.index.pin(node)
            self.pinned.append(node)

    @precondition(lambda self: self.pinned)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        node = data.draw(st.sampled_from(self.pinned))
        self.pinned.remove(node)
        self.index.unpin(node)
        self.note_use(self.prefix_of(page) for page in chain_of(node))

    @rule()
    def evict(self) -> None:
        """What nobody uses nor pins, used longest ago, is given away; it is a leaf by then."""
        idle = [each for each in self.used_last if self.is_idle(each)]
        node = self.index.evict()
        if node is None:
            assert not idle
            return
        gone = self.prefix_of(node.page)
        assert gone == idle[0]
        del self.published[gone]
        self.used_last.remove(gone)
        assert not any(is_longer(each, gone) for each in self.published)

    @invariant()
    def everything_holds(self) -> None:
        self.index.check()
        assert len(self.index) == len(self.published)
        assert self.index.num_pinned == len({p for node in self.pinned for p in chain_of(node)})
        for reader in self.readers:
            stop = reader.chain.num_full
            found = [node.page for node in self.index.match(reader.chain, 0, stop)]
            assert found == self.expected(reader)

    def expected(self, reader: Reader) -> list[int]:
        pages: list[int] = []
        while (known := self.published.get(reader.prefix(len(pages) + 1))) is not None:
            if len(pages) == len(reader.ids) // PAGE_SIZE:
                break
            pages.append(known)
        return pages

    def is_idle(self, prefix: Prefix) -> bool:
        page = self.published[prefix]
        is_pinned = any(page in chain_of(node) for node in self.pinned)
        return not is_pinned and not any(page in reader.pages for reader in self.readers)

    def prefix_of(self, page: int) -> Prefix:
        (found,) = (prefix for prefix, known in self.published.items() if known == page)
        return found

    def note_use(self, prefixes: Iterable[Prefix]) -> None:
        for each in prefixes:
            if self.is_idle(each):
                self.used_last = [*(other for other in self.used_last if other != each), each]


def chain_of(node: Node | None) -> list[int]:
    """The pages up to a node, its own first."""
    pages = []
    while node is not None:
        pages.append(node.page)
        node = node.parent
    return pages


def is_longer(one: Prefix, other: Prefix) -> bool:
    return one[0] == other[0] and len(one[1]) > len(other[1]) == len(
        [1 for a, b in zip(one[1], other[1], strict=False) if a == b]
    )


TestPrefix = PrefixMachine.TestCase
TestPrefix.settings = settings(max_examples=80, stateful_step_count=40, derandomize=True)
