"""The prefix index: which page holds which ids after which others, for whom.

A full page is known by a chained hash: of its ids and of the hash of all before it,
beginning with the tenant's name under a random salt, so that tenants share nothing. A hash
only finds a page: its ids, and what they are beside (images), are compared as well. Only
pages whose keys and values are computed are published. What nobody uses stays, and the
least recently used leaf goes first when pages are needed (radix cache: SGLang,
arXiv 2312.07104 section 3). Knows ids and pages; no sequence, no entry of a client
(`entries.py`), no tensor.
"""

from __future__ import annotations

import secrets
from array import array
from collections import OrderedDict
from collections.abc import Sequence as Ids
from dataclasses import dataclass, field
from hashlib import blake2b

from minimsg.engine.pages import PagePool
from minimsg.engine.types import ImageSpan


@dataclass(slots=True, eq=False)
class Node:
    """A published page, and the page before it."""

    key: bytes  # of the ids of this page and of all before it
    content: bytes
    page: int
    parent: Node | None  # None: it is the first of its prompt
    num_children: int = 0
    num_pins: int = 0
    entries: set[bytes] = field(default_factory=set)  # keys of the entries that end after it


class Chain:
    """The keys of a sequence's pages. Follows its list of ids, which only grows."""

    def __init__(self, root: bytes, ids: list[int], images: Ids[ImageSpan], page_size: int) -> None:
        self.page_size = page_size
        self._ids = ids
        self._images = images
        self._keys = [root]

    @property
    def num_full(self) -> int:
        """How many pages the ids fill."""
        return len(self._ids) // self.page_size

    def key(self, num_pages: int) -> bytes:
        """The key of the first `num_pages` pages, all of them full."""
        while len(self._keys) <= num_pages:
            place = len(self._keys) - 1
            self._keys.append(_hash(self._keys[-1] + self.page_content(place)))
        return self._keys[num_pages]

    def page_content(self, place: int) -> bytes:
        """What the page at `place` holds."""
        return self.content(place * self.page_size, (place + 1) * self.page_size)

    def content(self, start: int, stop: int) -> bytes:
        """The ids from `start` to `stop`, and which part of which image any of them stand for."""
        images = b"".join(
            image.digest + (start - image.start).to_bytes(8, "little", signed=True)
            for image in self._images
            if image.start < stop and image.stop > start
        )
        return array("q", self._ids[start:stop]).tobytes() + images


class PrefixIndex:
    """Published pages by what they hold.

    Invariants (`check`): a node's parent is in the index; whoever uses a page uses those
    before it; `_idle` holds the nodes that are neither used nor pinned, children before
    their parents, those used last at its end.
    """

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self.pool = pool
        self.page_size = page_size
        self._salt = secrets.token_bytes(32)
        self._nodes: dict[bytes, Node] = {}
        self._by_page: dict[int, Node] = {}
        self._idle: OrderedDict[int, Node] = OrderedDict()  # by page
        self.num_pinned = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def is_published(self, node: Node) -> bool:
        """Whether a node is in the index still."""
        return self._nodes.get(node.key) is node

    def chain(self, tenant: str, ids: list[int], images: Ids[ImageSpan]) -> Chain:
        """The keys of what `tenant` has read or written."""
        return Chain(_hash(self._salt + tenant.encode()), ids, images, self.page_size)

    def match(self, chain: Chain, start: int, stop: int) -> list[Node]:
        """The published pages of `chain` from place `start` on, until one is missing or `stop`."""
        parent = self._nodes.get(chain.key(start)) if start else None
        nodes: list[Node] = []
        for place in range(start, stop):
            node = self._nodes.get(chain.key(place + 1))
            if node is None or not _is(node, chain.page_content(place), parent):
                break
            nodes.append(node)
            parent = node
        return nodes

    def published(self, page: int) -> Node | None:
        """The node of a page, if it can be found."""
        node = self._by_page.get(page)
        return node if node is not None and self.is_published(node) else None

    def pinned_pages(self) -> frozenset[int]:
        """The pages that are not to be evicted."""
        if not self.num_pinned:
            return frozenset()
        return frozenset(page for page, node in self._by_page.items() if node.num_pins)

    def publish(self, chain: Chain, place: int, table: Ids[int]) -> Node | None:
        """Make the page at `place` known; None where that cannot be, since what is before is not.

        The node's page is another one if somebody else has published the same before.
        """
        key, content, page = chain.key(place + 1), chain.page_content(place), table[place]
        parent = self.published(table[place - 1]) if place else None
        if place and parent is None:
            return None
        if node := self._nodes.get(key):
            return node if _is(node, content, parent) else None
        node = Node(key, content, page, parent)
        self._nodes[key] = self._by_page[page] = node
        if parent is not None:
            parent.num_children += 1
        self.pool.keep(page)
        return node

    def use(self, node: Node) -> None:
        """One more user of a published page."""
        self.pool.share(node.page)
        self._idle.pop(node.page, None)

    def release(self, pages: Ids[int]) -> None:
        """One user less of each page of a sequence, published or not."""
        for page in reversed(pages):  # children first: they are the first to go
            self.pool.free([page])
            self._note(page)

    def pin(self, node: Node | None) -> None:
        """Evict neither `node` nor what is before it until it is unpinned as often."""
        while node is not None:
            self.num_pinned += not node.num_pins
            node.num_pins += 1
            self._idle.pop(node.page, None)
            node = node.parent

    def unpin(self, node: Node | None) -> None:
        """Take back one `pin`."""
        while node is not None:
            node.num_pins -= 1
            self.num_pinned -= not node.num_pins
            self._note(node.page)
            node = node.parent

    def evict(self) -> Node | None:
        """Give the page of the least recently used leaf back to the pool; None if there is none."""
        if not self._idle:
            return None
        _, node = self._idle.popitem(last=False)
        assert not node.num_children, "a page is evicted before those that follow it"
        del self._nodes[node.key]
        if node.parent is not None:
            node.parent.num_children -= 1
        self._discard(node)
        return node

    def withdraw(self, chain: Chain, stop: int) -> list[Node]:
        """Let nobody find the pages of `chain` before `stop` again, nor what follows them.

        Whoever uses them goes on; then they are free. For pages that may hold what is wrong.
        """
        doomed = dict.fromkeys(self.match(chain, 0, stop))
        for node in self._nodes.values():  # parents before their children
            if node.parent in doomed:
                doomed[node] = None
        for node in doomed:
            del self._nodes[node.key]
            if node.parent is not None:
                node.parent.num_children -= 1
            if self._idle.pop(node.page, None):
                self._discard(node)
        return list(doomed)

    def _note(self, page: int) -> None:
        """Put a published page that is now neither used nor pinned at the end of the idle ones."""
        node = self._by_page.get(page)
        if node is None or node.num_pins or self.pool.references(page):
            return
        if not self.is_published(node):
            self._discard(node)
            return
        self._idle[page] = node
        self._idle.move_to_end(page)

    def _discard(self, node: Node) -> None:
        del self._by_page[node.page]
        self.pool.forget(node.page)

    def check(self) -> None:
        """Assert every invariant."""
        self.pool.check()
        places = {page: place for place, page in enumerate(self._idle)}
        for node in self._nodes.values():
            assert self._by_page[node.page] is node
            is_used = self.pool.references(node.page) > 0
            assert (node.page in places) == (not is_used and not node.num_pins)
            if (parent := node.parent) is not None:
                assert self._nodes[parent.key] is parent, "a page is published after a lost one"
                assert not is_used or self.pool.references(parent.page), "a prefix is not held"
                assert not node.num_pins or parent.num_pins, "a prefix is not pinned"
                assert parent.page not in places or places[node.page] < places[parent.page]
        children = [node.parent for node in self._nodes.values()]
        assert all(children.count(node) == node.num_children for node in self._nodes.values())
        for node in self._by_page.values():  # others were withdrawn, and are in use still
            assert self.is_published(node) or self.pool.references(node.page)
        assert self.num_pinned == sum(node.num_pins > 0 for node in self._nodes.values())


def _is(node: Node, content: bytes, parent: Node | None) -> bool:
    """Whether `node` is what its key says: a hash finds, but proves nothing."""
    return node.content == content and node.parent is parent


def _hash(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()
